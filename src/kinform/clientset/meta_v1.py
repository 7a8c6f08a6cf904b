"""Kubernetes v1.36.4: what all objects share. Written by ``make clientset``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from kinform.clientset.wire import JSON, Time, WireModel

__all__ = [
    "Condition",
    "DeleteOptions",
    "FieldSelectorRequirement",
    "LabelSelector",
    "LabelSelectorRequirement",
    "ManagedFieldsEntry",
    "ObjectMeta",
    "OwnerReference",
    "Preconditions",
    "apply",
]


class Condition(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Condition contains details for one aspect of the current state of this API Resource."""

    last_transition_time: Time | None = msgspec.field(default=None, name="lastTransitionTime")
    """lastTransitionTime is the last time the condition transitioned from one status to another.
    This should be when the underlying condition changed.  If that is not known, then using
    the time when the API field changed is acceptable.
    """
    message: str | None = None
    """message is a human readable message indicating details about the transition. This may be
    an empty string.
    """
    observed_generation: int | None = msgspec.field(default=None, name="observedGeneration")
    """observedGeneration represents the .metadata.generation that the condition was set based
    upon. For instance, if .metadata.generation is currently 12, but the
    .status.conditions[x].observedGeneration is 9, the condition is out of date with respect
    to the current state of the instance.
    """
    reason: str | None = None
    """reason contains a programmatic identifier indicating the reason for the condition's last
    transition. Producers of specific condition types may define expected values and meanings
    for this field, and whether the values are considered a guaranteed API. The value should
    be a CamelCase string. This field may not be empty.
    """
    status: str | None = None
    """status of the condition, one of True, False, Unknown."""
    type: str | None = None
    """type of condition in CamelCase or in foo.example.com/CamelCase."""


class DeleteOptions(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """DeleteOptions may be provided when deleting an API object."""

    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    """APIVersion defines the versioned schema of this representation of an object. Servers
    should convert recognized schemas to the latest internal value, and may reject
    unrecognized values. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources
    """
    dry_run: Sequence[str] | None = msgspec.field(default=None, name="dryRun")
    """When present, indicates that modifications should not be persisted. An invalid or
    unrecognized dryRun directive will result in an error response and no further processing
    of the request. Valid values are: - All: all dry run stages will be processed
    """
    grace_period_seconds: int | None = msgspec.field(default=None, name="gracePeriodSeconds")
    """The duration in seconds before the object should be deleted. Value must be non-negative
    integer. The value zero indicates delete immediately. If this value is nil, the default
    grace period for the specified type will be used. Defaults to a per object value if not
    specified. zero means delete immediately.
    """
    ignore_store_read_error_with_cluster_breaking_potential: bool | None = msgspec.field(
        default=None, name="ignoreStoreReadErrorWithClusterBreakingPotential"
    )
    """if set to true, it will trigger an unsafe deletion of the resource in case the normal
    deletion flow fails with a corrupt object error. A resource is considered corrupt if it
    can not be retrieved from the underlying storage successfully because of a) its data can
    not be transformed e.g. decryption failure, or b) it fails to decode into an object. NOTE:
    unsafe deletion ignores finalizer constraints, skips precondition checks, and removes the
    object from the storage. WARNING: This may potentially break the cluster if the workload
    associated with the resource being unsafe-deleted relies on normal deletion flow. Use only
    if you REALLY know what you are doing. The default value is false, and the user must opt
    in to enable it
    """
    kind: str | None = None
    """Kind is a string value representing the REST resource this object represents. Servers may
    infer this from the endpoint the client submits requests to. Cannot be updated. In
    CamelCase. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds
    """
    orphan_dependents: bool | None = msgspec.field(default=None, name="orphanDependents")
    """Deprecated: please use the PropagationPolicy, this field will be deprecated in 1.7. Should
    the dependent objects be orphaned. If true/false, the "orphan" finalizer will be added
    to/removed from the object's finalizers list. Either this field or PropagationPolicy may
    be set, but not both.
    """
    preconditions: Preconditions | None = None
    """Must be fulfilled before a deletion is carried out. If not possible, a 409 Conflict status
    will be returned.
    """
    propagation_policy: str | None = msgspec.field(default=None, name="propagationPolicy")
    """Whether and how garbage collection will be performed. Either this field or
    OrphanDependents may be set, but not both. The default policy is decided by the existing
    finalizer set in the metadata.finalizers and the resource-specific default policy.
    Acceptable values are: 'Orphan' - orphan the dependents; 'Background' - allow the garbage
    collector to delete the dependents in the background; 'Foreground' - a cascading policy
    that deletes all dependents in the foreground.
    """


class FieldSelectorRequirement(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """FieldSelectorRequirement is a selector that contains values, a key, and an operator that
    relates the key and values.
    """

    key: str | None = None
    """key is the field selector key that the requirement applies to."""
    operator: str | None = None
    """operator represents a key's relationship to a set of values. Valid operators are In,
    NotIn, Exists, DoesNotExist. The list of operators may grow in the future.
    """
    values: Sequence[str] | None = None
    """values is an array of string values. If the operator is In or NotIn, the values array must
    be non-empty. If the operator is Exists or DoesNotExist, the values array must be empty.
    """


class LabelSelector(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A label selector is a label query over a set of resources. The result of matchLabels and
    matchExpressions are ANDed. An empty label selector matches all objects. A null label
    selector matches no objects.
    """

    match_expressions: Sequence[LabelSelectorRequirement] | None = msgspec.field(
        default=None, name="matchExpressions"
    )
    """matchExpressions is a list of label selector requirements. The requirements are ANDed."""
    match_labels: Mapping[str, str] | None = msgspec.field(default=None, name="matchLabels")
    """matchLabels is a map of {key,value} pairs. A single {key,value} in the matchLabels map is
    equivalent to an element of matchExpressions, whose key field is "key", the operator is
    "In", and the values array contains only "value". The requirements are ANDed.
    """


class LabelSelectorRequirement(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A label selector requirement is a selector that contains values, a key, and an operator
    that relates the key and values.
    """

    key: str | None = None
    """key is the label key that the selector applies to."""
    operator: str | None = None
    """operator represents a key's relationship to a set of values. Valid operators are In,
    NotIn, Exists and DoesNotExist.
    """
    values: Sequence[str] | None = None
    """values is an array of string values. If the operator is In or NotIn, the values array must
    be non-empty. If the operator is Exists or DoesNotExist, the values array must be empty.
    This array is replaced during a strategic merge patch.
    """


class ManagedFieldsEntry(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """ManagedFieldsEntry is a workflow-id, a FieldSet and the group version of the resource that
    the fieldset applies to.
    """

    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    """APIVersion defines the version of this resource that this field set applies to. The format
    is "group/version" just like the top-level APIVersion field. It is necessary to track the
    version of a field set because it cannot be automatically converted.
    """
    fields_type: str | None = msgspec.field(default=None, name="fieldsType")
    """FieldsType is the discriminator for the different fields format and version. There is
    currently only one possible value: "FieldsV1"
    """
    fields_v1: JSON = msgspec.field(default=None, name="fieldsV1")
    """FieldsV1 holds the first JSON version format as described in the "FieldsV1" type."""
    manager: str | None = None
    """Manager is an identifier of the workflow managing these fields."""
    operation: str | None = None
    """Operation is the type of operation which lead to this ManagedFieldsEntry being created.
    The only valid values for this field are 'Apply' and 'Update'.
    """
    subresource: str | None = None
    """Subresource is the name of the subresource used to update that object, or empty string if
    the object was updated through the main resource. The value of this field is used to
    distinguish between managers, even if they share the same name. For example, a status
    update will be distinct from a regular update using the same manager name. Note that the
    APIVersion field is not related to the Subresource field and it always corresponds to the
    version of the main resource.
    """
    time: Time | None = None
    """Time is the timestamp of when the ManagedFields entry was added. The timestamp will also
    be updated if a field is added, the manager changes any of the owned fields value or
    removes a field. The timestamp does not update when a field is removed from the entry
    because another manager took it over.
    """


class ObjectMeta(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """ObjectMeta is metadata that all persisted resources must have, which includes all objects
    users must create.
    """

    annotations: Mapping[str, str] | None = None
    """Annotations is an unstructured key value map stored with a resource that may be set by
    external tools to store and retrieve arbitrary metadata. They are not queryable and should
    be preserved when modifying objects. More info:
    https://kubernetes.io/docs/concepts/overview/working-with-objects/annotations
    """
    creation_timestamp: Time | None = msgspec.field(default=None, name="creationTimestamp")
    """CreationTimestamp is a timestamp representing the server time when this object was
    created. It is not guaranteed to be set in happens-before order across separate
    operations. Clients may not set this value. It is represented in RFC3339 form and is in
    UTC.

    Populated by the system. Read-only. Null for lists. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
    """
    deletion_grace_period_seconds: int | None = msgspec.field(
        default=None, name="deletionGracePeriodSeconds"
    )
    """Number of seconds allowed for this object to gracefully terminate before it will be
    removed from the system. Only set when deletionTimestamp is also set. May only be
    shortened. Read-only.
    """
    deletion_timestamp: Time | None = msgspec.field(default=None, name="deletionTimestamp")
    """DeletionTimestamp is RFC 3339 date and time at which this resource will be deleted. This
    field is set by the server when a graceful deletion is requested by the user, and is not
    directly settable by a client. The resource is expected to be deleted (no longer visible
    from resource lists, and not reachable by name) after the time in this field, once the
    finalizers list is empty. As long as the finalizers list contains items, deletion is
    blocked. Once the deletionTimestamp is set, this value may not be unset or be set further
    into the future, although it may be shortened or the resource may be deleted prior to this
    time. For example, a user may request that a pod is deleted in 30 seconds. The Kubelet
    will react by sending a graceful termination signal to the containers in the pod. After
    that 30 seconds, the Kubelet will send a hard termination signal (SIGKILL) to the
    container and after cleanup, remove the pod from the API. In the presence of network
    partitions, this object may still exist after this timestamp, until an administrator or
    automated process can determine the resource is fully terminated. If not set, graceful
    deletion of the object has not been requested.

    Populated by the system when a graceful deletion is requested. Read-only. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
    """
    finalizers: Sequence[str] | None = None
    """Must be empty before the object is deleted from the registry. Each entry is an identifier
    for the responsible component that will remove the entry from the list. If the
    deletionTimestamp of the object is non-nil, entries in this list can only be removed.
    Finalizers may be processed and removed in any order.  Order is NOT enforced because it
    introduces significant risk of stuck finalizers. finalizers is a shared field, any actor
    with permission can reorder it. If the finalizer list is processed in order, then this can
    lead to a situation in which the component responsible for the first finalizer in the list
    is waiting for a signal (field value, external system, or other) produced by a component
    responsible for a finalizer later in the list, resulting in a deadlock. Without enforced
    ordering finalizers are free to order amongst themselves and are not vulnerable to
    ordering changes in the list.
    """
    generate_name: str = msgspec.field(default="", name="generateName")
    """GenerateName is an optional prefix, used by the server, to generate a unique name ONLY IF
    the Name field has not been provided. If this field is used, the name returned to the
    client will be different than the name passed. This value will also be combined with a
    unique suffix. The provided value has the same validation rules as the Name field, and may
    be truncated by the length of the suffix required to make the value unique on the server.

    If this field is specified and the generated name exists, the server will return a 409.

    Applied only if Name is not specified. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#idempotency
    """
    generation: int | None = None
    """A sequence number representing a specific generation of the desired state. Populated by
    the system. Read-only.
    """
    labels: Mapping[str, str] | None = None
    """Map of string keys and values that can be used to organize and categorize (scope and
    select) objects. May match selectors of replication controllers and services. More info:
    https://kubernetes.io/docs/concepts/overview/working-with-objects/labels
    """
    managed_fields: msgspec.Raw | msgspec.UnsetType = msgspec.field(
        default=msgspec.UNSET, name="managedFields"
    )
    """ManagedFields maps workflow-id and version to the set of fields that are managed by that
    workflow. This is mostly for internal housekeeping, and users typically shouldn't need to
    set or understand this field. A workflow can be the user's name, a controller's name, or
    the name of a specific apply path like "ci-cd". The set of fields is always in the version
    that the workflow used when modifying the object.

    Kept as JSON: `kinform.clientset.ownership.managed_fields` reads it.
    """
    name: str = ""
    """Name must be unique within a namespace. Is required when creating resources, although some
    resources may allow a client to request the generation of an appropriate name
    automatically. Name is primarily intended for creation idempotence and configuration
    definition. Cannot be updated. More info:
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names
    """
    namespace: str = ""
    """Namespace defines the space within which each name must be unique. An empty namespace is
    equivalent to the "default" namespace, but "default" is the canonical representation. Not
    all objects are required to be scoped to a namespace - the value of this field for those
    objects will be empty.

    Must be a DNS_LABEL. Cannot be updated. More info:
    https://kubernetes.io/docs/concepts/overview/working-with-objects/namespaces
    """
    owner_references: Sequence[OwnerReference] | None = msgspec.field(
        default=None, name="ownerReferences"
    )
    """List of objects depended by this object. If ALL objects in the list have been deleted,
    this object will be garbage collected. If this object is managed by a controller, then an
    entry in this list will point to this controller, with the controller field set to true.
    There cannot be more than one managing controller.
    """
    resource_version: str = msgspec.field(default="", name="resourceVersion")
    """An opaque value that represents the internal version of this object that can be used by
    clients to determine when objects have changed. May be used for optimistic concurrency,
    change detection, and the watch operation on a resource or set of resources. Clients must
    treat these values as opaque and passed unmodified back to the server. They may only be
    valid for a particular resource or set of resources.

    Populated by the system. Read-only. Value must be treated as opaque by clients and . More
    info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#concurrency-control-and-consistency
    """
    self_link: str | None = msgspec.field(default=None, name="selfLink")
    """Deprecated: selfLink is a legacy read-only field that is no longer populated by the
    system.
    """
    uid: str = ""
    """UID is the unique in time and space value for this object. It is typically generated by
    the server on successful creation of a resource and is not allowed to change on PUT
    operations.

    Populated by the system. Read-only. More info:
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#uids
    """

    def __post_init__(self) -> None:
        """Keep the bytes of ``managedFields`` alone, not all those of the object."""
        raw = self.managed_fields
        if isinstance(raw, msgspec.Raw):
            own = raw.copy() if bytes(raw) else msgspec.UNSET
            msgspec.structs.force_setattr(self, "managed_fields", own)


class OwnerReference(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """OwnerReference contains enough information to let you identify an owning object. An owning
    object must be in the same namespace as the dependent, or be cluster-scoped, so there is
    no namespace field.
    """

    api_version: str | None = msgspec.field(default=None, name="apiVersion")
    """API version of the referent."""
    block_owner_deletion: bool | None = msgspec.field(default=None, name="blockOwnerDeletion")
    """If true, AND if the owner has the "foregroundDeletion" finalizer, then the owner cannot be
    deleted from the key-value store until this reference is removed. See
    https://kubernetes.io/docs/concepts/architecture/garbage-collection/#foreground-deletion
    for how the garbage collector interacts with this field and enforces the foreground
    deletion. Defaults to false. To set this field, a user needs "delete" permission of the
    owner, otherwise 422 (Unprocessable Entity) will be returned.
    """
    controller: bool | None = None
    """If true, this reference points to the managing controller."""
    kind: str | None = None
    """Kind of the referent. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds
    """
    name: str | None = None
    """Name of the referent. More info:
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names
    """
    uid: str | None = None
    """UID of the referent. More info:
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#uids
    """


class Preconditions(WireModel, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Preconditions must be fulfilled before an operation (update, delete, etc.) is carried out."""

    resource_version: str | None = msgspec.field(default=None, name="resourceVersion")
    """Specifies the target ResourceVersion"""
    uid: str | None = None
    """Specifies the target UID."""


if TYPE_CHECKING:
    from kinform.clientset import meta_v1 as apply
else:
    apply = sys.modules[__name__]
"""What to apply: every field of a model may be left out, so it is the models themselves."""
