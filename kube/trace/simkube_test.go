package trace_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/trace"
)

// A field is a key and a value of a map, in an order.
type field struct{ key, value any }

// raw are bytes of MessagePack.
type raw []byte

// pack returns a value in MessagePack, each in its longest form.
func pack(v any) []byte {
	head := func(b byte, n int) []byte { return binary.BigEndian.AppendUint32([]byte{b}, uint32(n)) }
	switch v := v.(type) {
	case raw:
		return v
	case string:
		return append(head(0xdb, len(v)), v...)
	case int:
		return binary.BigEndian.AppendUint64([]byte{0xd3}, uint64(v))
	case []any:
		out := head(0xdd, len(v))
		for _, item := range v {
			out = append(out, pack(item)...)
		}
		return out
	case []field:
		out := head(0xdf, len(v))
		for _, f := range v {
			out = append(append(out, pack(f.key)...), pack(f.value)...)
		}
		return out
	}
	panic(v)
}

// named returns the object of a kind.
func named(apiVersion, kind, name string, more ...field) []field {
	return append([]field{{"apiVersion", apiVersion}, {"kind", kind}, {"metadata", []field{{"namespace", "prod"}, {"name", name}}}}, more...)
}

// file returns a file of SimKube with the events and lifecycles.
func file(events, lifecycles any) []field {
	return []field{
		{"version", 2},
		{"config", []field{{"trackedObjects", []field{{"batch/v1.Job", []field{}}}}}},
		{"events", events},
		{"index", []field{{"batch/v1.Job", []field{{"prod/report", raw{0xcf, 255, 255, 255, 255, 255, 255, 255, 255}}}}}},
		{"pod_lifecycles", lifecycles},
	}
}

func event(ts int, applied, deleted []any) []field {
	return []field{{"ts", ts}, {"applied_objs", applied}, {"deleted_objs", deleted}}
}

// report is a trace of a Job, with all types of values.
func report() []byte {
	values := []any{
		raw{0xc0}, raw{0xc2}, raw{0xc3}, raw{0x7f}, raw{0xe0}, raw{0xcc, 200}, raw{0xcd, 1, 0}, raw{0xce, 1, 0, 0, 0}, raw{0xcf, 0, 0, 0, 1, 0, 0, 0, 0},
		raw{0xd0, 0x80}, raw{0xd1, 0xff, 0}, raw{0xd2, 0xff, 0, 0, 0}, -7, raw{0xca, 0x3f, 0, 0, 0}, raw{0xcb, 0x3f, 0xe0, 0, 0, 0, 0, 0, 0},
		raw{0xa2, 'o', 'k'}, raw{0xd9, 2, 'o', 'k'}, raw{0xda, 0, 2, 'o', 'k'}, raw{0x91, 1}, raw{0xdc, 0, 1, 1}, raw{0x81, 0xa1, 'k', 1}, raw{0xde, 0, 1, 0xa1, 'k', 1},
	}
	pod := []field{{"spec", []field{{"restartPolicy", "Never"}}}}
	job := named("batch/v1", "Job", "report", field{"spec", []field{{"template", pod}, {"values", values}}})
	finished := func(start, end int) any { return []field{{"Finished", []any{start, end}}} }
	return pack(file(
		[]any{event(1000, nil, nil), event(1060, []any{job}, nil), event(1060, nil, nil), event(4600, nil, []any{job})},
		[]field{{[]any{"batch/v1.Job", "prod/report"}, []field{{raw{0xcf, 255, 255, 255, 255, 255, 255, 255, 255}, []any{
			finished(1061, 1091), finished(1100, 1145), []field{{"Running", 1200}}, "Empty", finished(1300, 1340),
		}}}}},
	))
}

func TestAFileOfSimKubeIsRead(t *testing.T) {
	tr, err := trace.ReadSimKube(bytes.NewReader(report()))
	require.NoError(t, err)
	require.Len(t, tr.Events, 4)
	assert.Equal(t, time.Minute, tr.Events[1].At)
	assert.Equal(t, time.Hour, tr.Length())
	job := tr.Events[1].Applied[0]
	assert.Equal(t, "prod/report", job.GetNamespace()+"/"+job.GetName())
	assert.Equal(t, []any{
		nil, false, true, int64(127), int64(-32), int64(200), int64(256), int64(1 << 24), int64(1 << 32),
		int64(-128), int64(-256), int64(-1 << 24), int64(-7), 0.5, 0.5,
		"ok", "ok", "ok", []any{int64(1)}, []any{int64(1)}, map[string]any{"k": int64(1)}, map[string]any{"k": int64(1)},
	}, job.Object["spec"].(map[string]any)["values"])
	owner := trace.Owner{APIVersion: "batch/v1", Kind: "Job", Namespace: "prod", Name: "report"}
	assert.Equal(t, map[trace.Owner][]time.Duration{owner: {30 * time.Second, 45 * time.Second, 40 * time.Second}}, tr.Lifetimes)
	assert.Equal(t, job, tr.Events[3].Deleted[0])

	tr.SetBehaviors("behavior")
	template := job.Object["spec"].(map[string]any)["template"].(map[string]any)
	assert.Equal(t, map[string]any{"annotations": map[string]any{"behavior": "exit=0@40s"}}, template["metadata"])
	job.DeepCopy() // panics for types that JSON does not have
}

func TestHostileFilesAreErrors(t *testing.T) {
	object := func(fields ...field) any { return file([]any{event(1, []any{fields}, nil)}, []field{}) }
	lifecycle := func(v any) any { return file([]any{}, []field{{[]any{"v1.Pod", "a/b"}, []field{{1, []any{v}}}}}) }
	deep := raw{}
	for range 200 {
		deep = append(deep, 0x91)
	}
	for want, data := range map[string]any{
		"offset 0: value is no map":                       "x",
		"version 0 is not supported; 2 is":                []field{},
		"version 1 is not supported":                      []field{{"version", 1}},
		"1 more bytes":                                    raw(append(report(), 0)),
		"offset 37: value is no array":                    []field{{"version", 2}, {"events", 1}},
		"event 1: time 4 is before":                       file([]any{event(5, nil, nil), event(4, nil, nil)}, []field{}),
		"event 0: time -1 is out of range":                file([]any{event(-1, nil, nil)}, []field{}),
		"event 1: time 4611686018427387904 is out":        file([]any{event(0, nil, nil), event(1<<62, nil, nil)}, []field{}),
		`object  Pod "a" has no apiVersion`:               object(field{"kind", "Pod"}, field{"metadata", []field{{"name", "a"}}}),
		`object v1 Pod "" has no`:                         object(field{"kind", "Pod"}, field{"apiVersion", "v1"}, field{"metadata", 1}),
		`key "kind" occurs twice`:                         object(field{"kind", "Pod"}, field{"kind", "Pod"}),
		"value is no string":                              object(field{1, "Pod"}),
		"type 0xc4 has no counterpart in JSON":            object(field{"data", raw{0xc4, 1, 0}}),
		"type 0xc1 has no counterpart in JSON":            object(field{"data", raw{0xc1}}),
		"NaN has no counterpart in JSON":                  object(field{"data", raw{0xca, 0x7f, 0xc0, 0, 0}}),
		"integer exceeds 64 bits with a sign":             object(field{"data", raw{0xcf, 255, 255, 255, 255, 255, 255, 255, 255}}),
		"string is not UTF-8":                             object(field{"data", "\xff"}),
		"file is truncated":                               raw("\x82\xa7version\x02\xa6events\xdd\xff\xff\xff\xff"),
		"values are nested more than 100 deep":            object(field{"data", deep}),
		`owner of pods ["x"] has not two names`:           file([]any{}, []field{{[]any{"x"}, []field{}}}),
		"lifecycle is no map":                             lifecycle(1),
		"lifecycle has not a start and a later end: [5]":  lifecycle([]field{{"Finished", []any{5}}}),
		"lifecycle has not a start and a later end: [5 4": lifecycle([]field{{"Finished", []any{5, 4}}}),
	} {
		_, err := trace.ReadSimKube(bytes.NewReader(pack(data)))
		assert.ErrorContains(t, err, want)
	}
	for i := range len(report()) {
		_, err := trace.ReadSimKube(bytes.NewReader(report()[:i]))
		require.Error(t, err, "cut at %d", i)
	}
	// An array of 17 million values.
	_, err := trace.ReadSimKube(io.MultiReader(strings.NewReader("\x81\xa1x\xdd\x01\x04\x00\x00"), io.LimitReader(zeros{}, 17<<20)))
	assert.ErrorContains(t, err, "more than 16777216 values")
	_, err = trace.ReadSimKube(zeros{})
	assert.ErrorContains(t, err, "file is larger than 134217728 bytes")
}

// zeros is a file without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Each file that can be read can be copied and has its events in order.
func FuzzReadSimKube(f *testing.F) {
	f.Add(report())
	f.Add([]byte("\x81\xa7version\x02"))
	f.Add([]byte("\x82\xa7version\x02\xa6events\xdd\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := trace.ReadSimKube(bytes.NewReader(data))
		if err != nil {
			return
		}
		tr.SetBehaviors("behavior")
		at := time.Duration(0)
		for _, e := range tr.Events {
			require.GreaterOrEqual(t, e.At, at)
			at = e.At
			for _, o := range append(e.Applied, e.Deleted...) {
				require.NotEmpty(t, o.GetKind())
				o.DeepCopy()
			}
		}
	})
}
