package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func run(t *testing.T, o options) (out string, ok bool) {
	t.Helper()
	var b bytes.Buffer
	var err error
	synctest.Test(t, func(t *testing.T) { ok, err = simulate(t.Context(), o, &b) })
	require.NoError(t, err)
	return b.String(), ok
}

func TestASeedGivesTheSameRun(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "node.svg")
	first, ok := run(t, options{seed: 7, calm: true, svg: picture})
	assert.True(t, ok)
	again, _ := run(t, options{seed: 7, calm: true})
	assert.Equal(t, first, again)
	assert.Contains(t, first, "seed 7: ")
	assert.Contains(t, first, " 0 violated\n")
	svg, err := os.ReadFile(picture)
	require.NoError(t, err)
	assert.Contains(t, string(svg), "<svg")
}

func TestAScheduleIsReplayed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "schedule.txt")
	require.NoError(t, os.WriteFile(file, []byte("0s add web main:c=run\n5s kill down=3s\n20s delete web\n"), 0o644))
	out, ok := run(t, options{schedule: file, list: true})
	assert.True(t, ok)
	assert.Contains(t, out, "3 steps, 2 agents")
}

func TestErrorsNameTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bad")
	require.NoError(t, os.WriteFile(file, []byte("1s dance web\n"), 0o644))
	for _, name := range []string{file, "missing"} {
		_, err := simulate(t.Context(), options{schedule: name}, io.Discard)
		assert.ErrorContains(t, err, name)
	}
}

func TestTheProgramPrintsNothingOfPackageTesting(t *testing.T) {
	program := filepath.Join(t.TempDir(), "simulate.exe")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	began := time.Now()
	out, err = exec.Command(program, "-seed=3", "-for=10m").CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Less(t, time.Since(began), time.Minute, "time is virtual")
	assert.NotContains(t, string(out), "PASS")
	out, err = exec.Command(program, "-h").CombinedOutput()
	require.NoError(t, err)
	assert.NotContains(t, string(out), "test.")
	out, err = exec.Command(program, "-schedule=nowhere").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "nowhere")
}
