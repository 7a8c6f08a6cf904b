"""An informer that keeps its objects compressed: all reads are the same, and less is kept."""

from __future__ import annotations

import pytest

from kinform.cache.shared_informer import SharedInformer
from kinform.errors import UsageError
from kinform.objects.object import Object
from kinform.objects.storage import StorageForm
from kinform.testing import FakeListWatch, in_virtual_time
from kinform.transforms import strip_managed_fields
from tests.cache.support_informer import quiet, recorded, source_versions, versions

TEXT = "all work and no play makes a dull object " * 40


def large(name: str, number: int = 0) -> dict[str, object]:
    fields = [{"manager": "me", "operation": "Update", "fieldsV1": {"f:data": {}}}]
    metadata = {"name": name, "labels": {"app": "web"}, "managedFields": fields}
    return {"metadata": metadata, "data": {"text": f"{TEXT}{name}", "number": str(number)}}


def filled(count: int) -> FakeListWatch[Object]:
    source = FakeListWatch()
    for number in range(count):
        source.add(large(f"o{number}"))
    return source


@in_virtual_time
async def test_compressed_objects_read_as_before_and_later_ones_are_compressed_too() -> None:
    source = filled(800)  # more than a megabyte: less is not worth it
    informer = SharedInformer(
        source,
        storage="zstd",
        transform=strip_managed_fields,
        indexers={"app": lambda obj: obj.metadata.labels.get("app")},
    )
    recorder = recorded(informer)
    async with informer:
        await informer.wait_synced(5)
        await quiet(10)
        packed = informer.statistics().storage
        assert packed.objects == 800
        assert packed.packed_bytes < packed.raw_bytes / 4
        source.modify(large("o7", number=7))
        source.delete("default/o8")
        await quiet(10)
        assert informer.statistics().storage.objects == 801
        assert versions(informer) == source_versions(source)
        seventh = informer.lister.get("default/o7")
        assert seventh is not None
        assert seventh.is_packed
        assert seventh.at("data", "number") == "7"
        assert seventh.at("data", "text") == f"{TEXT}o7"
        assert seventh.at("metadata", "managedFields") is None
        assert len(informer.indexer.by_index("app", "web")) == 799
        assert [word for word in recorder.told if "initial" not in word] == ["o7@9>802", "-o8@803"]


@in_virtual_time
async def test_objects_that_are_kept_raw_are_not_packed() -> None:
    source = filled(800)
    async with SharedInformer(source) as informer:
        await informer.wait_synced(5)
        await quiet(60)
        assert informer.statistics().storage.objects == 0
        assert not any(obj.is_packed for obj in informer.lister.list())


@pytest.mark.parametrize(
    ("storage", "model", "complaint"),
    [("zstd", dict, "projection"), ("lz4", Object, "expected 'raw' or 'zstd'")],
)
def test_a_storage_that_cannot_be_is_refused_when_the_informer_is_made(
    storage: StorageForm, model: type[object], complaint: str
) -> None:
    with pytest.raises(UsageError, match=complaint):
        SharedInformer(FakeListWatch(), storage=storage, model=model)
