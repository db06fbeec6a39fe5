package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What it prints, with fewer seeds than a study takes: figures of a seed are the same
// everywhere.
func TestPoliciesAreCompared(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "policy.svg")
	var out bytes.Buffer
	require.NoError(t, run([]string{"--seeds=2", "--svg=" + picture}, &out))
	t.Logf("%s", &out)
	for _, part := range []string{
		"(2 nodes; less is better)", "pods evicted", "hours of work lost", "killed by the kernel", "least work",
		"pulls", "GiB pulled", "idle bytes", "the picture is in " + picture,
	} {
		assert.Contains(t, out.String(), part)
	}

	var again bytes.Buffer
	require.NoError(t, run([]string{"--seeds=2"}, &again))
	assert.Equal(t, again.String(), strings.Split(out.String(), "the picture")[0], "a seed is a run")

	svg, err := os.ReadFile(picture)
	require.NoError(t, err)
	circles := 0
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "circle" {
			circles++
		}
	}
	assert.Equal(t, 2*2*(len(memoryMeasures)+len(imageMeasures)), circles, "a dot for each node, policy and measure")
}

// The nodes are such that there is something to decide.
func TestThereIsSomethingToDecide(t *testing.T) {
	studies, err := compare(4)
	require.NoError(t, err)
	for _, s := range studies {
		differ := 0
		for m := range s.measures {
			less, more := s.better(1, m)
			differ += less + more
		}
		assert.Positive(t, differ, s.title)
		assert.Positive(t, s.outcomes[0].of(0)[3], s.title)
	}
}

func TestQuantiles(t *testing.T) {
	figures := []float64{1, 2, 3, 4}
	assert.EqualValues(t, 3, quantile(figures, 0.5))
	assert.EqualValues(t, 4, quantile(figures, 0.9))
	assert.EqualValues(t, 4, quantile(figures, 1))
}

func TestBadFlagsAreNamed(t *testing.T) {
	assert.ErrorContains(t, run([]string{"--seeds=0"}, io.Discard), "--seeds is 1 or more")
	assert.ErrorContains(t, run([]string{"x"}, io.Discard), `unexpected argument "x"`)
	assert.ErrorContains(t, run([]string{"--no"}, io.Discard), "see --help")
	var help bytes.Buffer
	assert.ErrorIs(t, run([]string{"--help"}, &help), flag.ErrHelp)
	assert.Contains(t, help.String(), "go run ./examples/policy")
}
