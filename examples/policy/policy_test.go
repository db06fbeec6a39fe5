package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRankingsAreCompared(t *testing.T) {
	var out, again bytes.Buffer
	results := compare(4)
	writeTable(&out, results)
	t.Logf("%s", &out)
	for _, part := range []string{"4 nodes", "youngest", "pods evicted", "hours of work lost", "OOM kills"} {
		assert.Contains(t, out.String(), part)
	}
	writeTable(&again, compare(4))
	assert.Equal(t, out.String(), again.String(), "a seed gives the same node")

	var evicted float64
	differ := 0
	for seed := range results[0] {
		evicted += results[0][seed][0]
		if results[0][seed] != results[1][seed] {
			differ++
		}
	}
	assert.Positive(t, evicted)
	assert.Positive(t, differ, "the rankings lead to different outcomes")
}
