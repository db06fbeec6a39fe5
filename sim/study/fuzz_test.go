package study_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/sim/study"
)

// A report can be written of all parts that can be read and merged.
func FuzzReadParts(f *testing.F) {
	var valid bytes.Buffer
	for _, p := range shares(f, draws(2), 2) {
		require.NoError(f, p.Write(&valid))
	}
	f.Add(valid.Bytes())
	f.Add([]byte(`{"study":{"name":"s","policies":["a"],"seeds":1},"share":0,"shares":1,"results":[{}]}`))
	f.Add([]byte(`{"study":{"name":"s","policies":["a"],"seeds":1},"share":0,"shares":1000000000,"results":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		parts, err := study.ReadParts(bytes.NewReader(text))
		if err != nil {
			return
		}
		report, err := study.Merge(parts)
		if err != nil {
			return
		}
		files(t, report)
	})
}

func TestAnythingElseInAFileIsAnError(t *testing.T) {
	var part bytes.Buffer
	require.NoError(t, shares(t, draws(1), 1)[0].Write(&part))
	for text, want := range map[string]string{
		part.String() + "panic: x":          "study: part 1 in the file: invalid character 'p'",
		part.String()[:len(part.Bytes())/2]: "study: part 0 in the file: unexpected EOF",
		`{"study":{},"node":1}`:             `unknown field "node"`,
		`{"study":{"name":"s"}}`:            "Spec.Policies is empty",
	} {
		_, err := study.ReadParts(strings.NewReader(text))
		assert.ErrorContains(t, err, want)
	}
	_, err := study.ReadParts(io.MultiReader(strings.NewReader(`"`), zeros{}))
	assert.ErrorContains(t, err, "part 0 in the file is larger than 33554432 bytes")
}

// zeros is a text without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}
