"""Record the protobuf encoding of Kubernetes' built-in kinds, for the embedded server.

    python tools/record_protobuf.py      needs Go, and the modules of tools/control-plane

The source is Go's reflection: the struct tags of the served types have the number of a field and
its name in JSON, and the types say which fields can be absent, which the wire format does not.

Writes ``src/kinform/apiserver/data/protobuf.json.xz``::

    {"kinds": {"v1/Pod": "k8s.io/api/core/v1.Pod", ...},
     "messages": {"k8s.io/api/core/v1.Pod": [[number, Go name, JSON name, type, flags], ...], ...}}

A type is one of the words in ``SCALARS`` below, or the name of a message. Flags are letters:
``r`` repeated, ``k`` a map with such values, ``p`` a pointer (present even if
it is empty), ``o`` left out of JSON when empty, ``z`` left out when it is a struct of zeros,
``i`` its fields are the parent's in JSON. The same modules give the same bytes.
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULE = ROOT / "tools/control-plane"
TARGET = ROOT / "src/kinform/apiserver/data/protobuf.json.xz"
SCALARS = frozenset(
    {"string", "bool", "int32", "int64", "float64", "bytes"}
    | {"quantity", "int-or-string", "time", "micro-time", "raw", "strings"}
    | {"schema-or-bool", "schema-or-array", "schema-or-strings"}
)
PROGRAM = r"""
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"

	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/kubernetes/scheme"
	aggregator "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

var (
	messages = map[string][][]any{}
	special  = map[string]string{
		"k8s.io/apimachinery/pkg/api/resource.Quantity":    "quantity",
		"k8s.io/apimachinery/pkg/util/intstr.IntOrString":  "int-or-string",
		"k8s.io/apimachinery/pkg/apis/meta/v1.Time":        "time",
		"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":   "micro-time",
		"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":    "raw",
		"k8s.io/apimachinery/pkg/runtime.RawExtension":     "raw",
		extensionsPath + "JSON":                            "raw",
		extensionsPath + "JSONSchemaPropsOrBool":           "schema-or-bool",
		extensionsPath + "JSONSchemaPropsOrArray":          "schema-or-array",
		extensionsPath + "JSONSchemaPropsOrStringArray":    "schema-or-strings",
	}
	unmarshaler = reflect.TypeFor[interface{ Unmarshal([]byte) error }]()
	marshaler   = reflect.TypeFor[json.Marshaler]()
)

const extensionsPath = "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1."

func name(t reflect.Type) string { return t.PkgPath() + "." + t.Name() }

func kindOf(t reflect.Type) string {
	if word, ok := special[name(t)]; ok {
		return word
	}
	if t.Implements(marshaler) || reflect.PointerTo(t).Implements(marshaler) {
		panic("writes its own JSON: " + name(t))
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int32, reflect.Int64, reflect.Float64:
		return t.Kind().String()
	case reflect.Struct:
		message(t)
		return name(t)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		if t.Elem().Kind() == reflect.String && reflect.PointerTo(t).Implements(unmarshaler) {
			return "strings"
		}
	}
	panic("unexpected type " + t.String())
}

func shapeOf(t reflect.Type) (string, string) {
	if t.Kind() == reflect.Pointer {
		return kindOf(t.Elem()), "p"
	}
	if t.Kind() == reflect.Map {
		if t.Key().Kind() != reflect.String {
			panic("unexpected key of " + t.String())
		}
		return kindOf(t.Elem()), "k"
	}
	if t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 &&
		!reflect.PointerTo(t).Implements(unmarshaler) {
		return kindOf(t.Elem()), "r"
	}
	return kindOf(t), ""
}

func message(t reflect.Type) {
	if _, ok := messages[name(t)]; ok {
		return
	}
	messages[name(t)] = nil
	fields := [][]any{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("protobuf")
		if tag == "" || tag == "-" {
			continue
		}
		number, err := strconv.Atoi(strings.Split(tag, ",")[1])
		if err != nil {
			panic(err)
		}
		parts := strings.Split(f.Tag.Get("json"), ",")
		kind, flags := shapeOf(f.Type)
		for _, option := range parts[1:] {
			switch option {
			case "omitempty":
				flags += "o"
			case "omitzero":
				flags += "z"
			case "inline":
				flags += "i"
			}
		}
		if (parts[0] == "") != strings.Contains(flags, "i") {
			panic("no name: " + name(t) + "." + f.Name)
		}
		fields = append(fields, []any{number, f.Name, parts[0], kind, flags})
	}
	messages[name(t)] = fields
}

func main() {
	for _, add := range []error{
		extensions.AddToScheme(scheme.Scheme), aggregator.AddToScheme(scheme.Scheme),
	} {
		if add != nil {
			panic(add)
		}
	}
	kinds := map[string]string{}
	for gvk, t := range scheme.Scheme.AllKnownTypes() {
		if gvk.Version == "__internal" || !reflect.PointerTo(t).Implements(unmarshaler) {
			continue
		}
		message(t)
		kinds[gvk.GroupVersion().String()+"/"+gvk.Kind] = name(t)
	}
	found := map[string]any{"kinds": kinds, "messages": messages}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
"""


def main() -> None:
    """Ask Go, check that its answer makes sense, and keep it."""
    found = json.loads(asked())
    messages, kinds = found["messages"], found["kinds"]
    for fields in messages.values():
        unknown = {field[3] for field in fields} - SCALARS - messages.keys()
        if unknown:
            raise SystemExit(f"types without a description: {sorted(unknown)}")
    packed = json.dumps(found, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    TARGET.write_bytes(lzma.compress(packed.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f"{len(kinds)} kinds, {len(messages)} messages, {TARGET.stat().st_size} bytes")


def asked() -> bytes:
    """Return what the program prints; modules come from Go's cache, else from its proxy."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("go.mod", "go.sum"):
            shutil.copy(MODULE / name, folder)
        Path(folder, "main.go").write_text(PROGRAM, encoding="utf-8")
        environment = os.environ | {"GOFLAGS": "-mod=mod"}
        done = subprocess.run(
            ["go", "run", "."], cwd=folder, env=environment, check=True, stdout=subprocess.PIPE
        )
    return done.stdout


if __name__ == "__main__":
    main()
