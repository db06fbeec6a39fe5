package oracle

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheKnownViolationIsRequiredOfOneKubelet(t *testing.T) {
	k := known{expected: []string{"back-off", "no-stuck-pod"}}
	found, other := []Violation{{Invariant: "no-stuck-pod"}}, []Violation{{Invariant: "init-order"}}
	assert.Empty(t, k.unexpected(false, found, nil))
	assert.Empty(t, k.unexpected(true, nil, nil))
	assert.Equal(t, "violates no-stuck-pod", k.unexpected(true, found, nil))
	assert.Equal(t, "does not violate back-off or no-stuck-pod, but [init-order]", k.unexpected(false, other, nil))
	assert.Equal(t, "does not violate back-off or no-stuck-pod, but []", k.unexpected(false, nil, nil))
	assert.Equal(t, "not played", k.unexpected(false, found, errors.New("not played")))
}

func TestAScenarioNamesTheKnownViolations(t *testing.T) {
	assert.Equal(t, []string{"a", "b-c"}, expected("# Text.\n"+expectation+"a, b-c.\n0s add web main:c=run\n"))
	assert.Empty(t, expected("0s add web main:c=run\n"))
	file := t.TempDir() + "/s.txt"
	require.NoError(t, os.WriteFile(file, []byte("0s add web main:c=run\n"), 0o644))
	assert.ErrorContains(t, knownCommand(t.Context(), []string{file, "--ours", file, "--kubelet", file}, t.Output()), "no line")
	assert.ErrorContains(t, knownCommand(t.Context(), []string{file, "--kubelet", file}, t.Output()), "requires --ours")
	assert.ErrorContains(t, knownCommand(t.Context(), []string{"--ours", file}, t.Output()), "requires a file")
}
