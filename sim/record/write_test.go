package record_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim/record"
)

func TestWrittenFramesAreRead(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	frames := []record.Frame{
		{Header: &record.Header{Start: start, Wall: start, File: 1, Node: "node-1"}},
		{At: time.Second, Call: &record.Call{Method: "ListContainers", Slot: 1, Request: []byte(`{}`), Answer: []byte(`{"containers":[]}`)}},
		{At: time.Minute, Call: &record.Call{Method: "ListContainers", Same: 1, Request: []byte(`{}`), Answer: []byte(`{"containers":[]}`)}},
		{At: time.Hour, End: &record.End{}},
	}
	var file bytes.Buffer
	require.NoError(t, record.Write(&file, slices.Values(frames)))
	var got []record.Frame
	for f, err := range record.Read(&file) {
		require.NoError(t, err)
		got = append(got, f)
	}
	require.Len(t, got, 4)
	assert.JSONEq(t, `{"containers":[]}`, string(got[2].Call.Answer))
	assert.Zero(t, got[2].Call.Same)
	assert.Equal(t, 1, frames[2].Call.Same, "the argument is unchanged")

	for _, invalid := range [][]record.Frame{{}, frames[1:], {frames[0], {}}, {frames[0], frames[0]}} {
		assert.Error(t, record.Write(&file, slices.Values(invalid)))
	}
}
