package checkpoint

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strings"
)

// ErrKubelet is the error for a file that is not a record of a kubelet, with the kubelet's text.
var ErrKubelet = errors.New("checkpoint is corrupted")

// A KubeletRecord is the content of a checkpoint file of a kubelet: JSON, with a checksum of the
// record as Go's reflection prints it.
type KubeletRecord interface {
	// Dump returns that text; DumpMap and DumpList print the maps and lists.
	Dump() string

	// Sum returns the field that is the checksum.
	Sum() *uint64
}

// EncodeKubelet sets the checksum of a record and returns the file.
func EncodeKubelet(r KubeletRecord) []byte {
	*r.Sum() = dumpSum(r)
	data, _ := json.Marshal(r) // cannot fail
	return data
}

// DecodeKubelet decodes a file of EncodeKubelet or of a kubelet into r; otherwise it returns ErrKubelet.
func DecodeKubelet(data []byte, r KubeletRecord) error {
	if err := json.Unmarshal(data, r); err != nil {
		return fmt.Errorf("%w: %w", ErrKubelet, err)
	}
	if sum := dumpSum(r); sum != *r.Sum() {
		return fmt.Errorf("%w: checksum is %d and should be %d", ErrKubelet, sum, *r.Sum())
	}
	return nil
}

// EncodeKubeletData returns a value as the JSON that a field of a record contains as text, as in records of
// kubelets since 1.37, and its checksum.
func EncodeKubeletData(v any) (text string, sum uint64) {
	data, _ := json.Marshal(v) // cannot fail
	return string(data), sumOf("(string)" + string(data))
}

// DecodeKubeletData decodes the text of EncodeKubeletData or of a kubelet into v; otherwise it returns ErrKubelet.
// Without a text and a checksum v remains as it is.
func DecodeKubeletData(text string, sum uint64, v any) error {
	if text == "" && sum == 0 {
		return nil
	}
	if want := sumOf("(string)" + text); want != sum {
		return fmt.Errorf("%w: checksum of the data is %d and should be %d", ErrKubelet, want, sum)
	}
	if err := json.Unmarshal([]byte(text), v); err != nil {
		return fmt.Errorf("%w: data: %w", ErrKubelet, err)
	}
	return nil
}

// dumpSum returns the checksum of a record.
func dumpSum(r KubeletRecord) uint64 { return sumOf(r.Dump()) }

// sumOf returns the kubelet's checksum: 32-bit FNV-1a.
func sumOf(text string) uint64 {
	h := fnv.New32a()
	_, _ = io.WriteString(h, text)
	return uint64(h.Sum32())
}

// DumpMap appends a map, sorted by key; value appends a value.
func DumpMap[K cmp.Ordered, V any](b *strings.Builder, m map[K]V, value func(V)) {
	if m == nil {
		b.WriteString("<nil>")
		return
	}
	b.WriteString("map")
	keys := slices.AppendSeq(make([]K, 0, len(m)), maps.Keys(m))
	slices.Sort(keys)
	DumpList(b, keys, func(key K) {
		fmt.Fprintf(b, "%v:", key)
		value(m[key])
	})
}

// DumpList appends a list; value appends a value.
func DumpList[V any](b *strings.Builder, list []V, value func(V)) {
	if list == nil {
		b.WriteString("<nil>")
		return
	}
	b.WriteByte('[')
	for i, v := range list {
		if i > 0 {
			b.WriteByte(' ')
		}
		value(v)
	}
	b.WriteByte(']')
}
