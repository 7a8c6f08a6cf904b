package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
)

// encode writes the pods of a JSON corpus as protobuf: records of a 4-byte big-endian length and
// the pod, without kind and apiVersion (JSON) and without an envelope (protobuf).
//
// A pod with a field that client-go does not know is an error, so that both have the same content.
// The output is complete or not there: it is renamed into place at the end.
func encode(in, out string) (err error) {
	source, err := os.Open(in)
	if err != nil {
		return err
	}
	defer source.Close()
	partial, err := os.CreateTemp(filepath.Dir(out), ".encode-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			partial.Close()
			os.Remove(partial.Name())
		}
	}()
	writer := bufio.NewWriterSize(partial, 1<<20)
	if err := encodeAll(bufio.NewReaderSize(source, 1<<20), writer); err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	if err := writer.Flush(); err != nil {
		return err
	}
	if err := partial.Chmod(0o644); err != nil {
		return err
	}
	if err := partial.Close(); err != nil {
		return err
	}
	return os.Rename(partial.Name(), out)
}

func encodeAll(in io.Reader, out io.Writer) error {
	for number := 0; ; number++ {
		record, err := readRecord(in)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			record, err = encodeOne(record)
		}
		if err == nil {
			err = writeRecord(out, record)
		}
		if err != nil {
			return fmt.Errorf("record %d: %w", number, err)
		}
	}
}

// readRecord returns io.EOF only where a record would begin.
func readRecord(in io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return nil, err
	}
	record := make([]byte, binary.BigEndian.Uint32(length[:]))
	if _, err := io.ReadFull(in, record); err != nil {
		return nil, fmt.Errorf("cut off: %s", err)
	}
	return record, nil
}

func writeRecord(out io.Writer, record []byte) error {
	length := binary.BigEndian.AppendUint32(nil, uint32(len(record)))
	if _, err := out.Write(length); err != nil {
		return err
	}
	_, err := out.Write(record)
	return err
}

func encodeOne(text []byte) ([]byte, error) {
	var pod corev1.Pod
	strict, err := kjson.UnmarshalStrict(text, &pod)
	if err != nil {
		return nil, err
	}
	if len(strict) > 0 {
		return nil, strict[0]
	}
	return pod.Marshal()
}
