package ginkgo

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const reportOfOne = `[{"SpecReports": [
	{"ContainerHierarchyTexts": ["[sig-node] Pods", ""], "LeafNodeText": "run", "LeafNodeType": "It", "State": "failed", "RunTime": 3000000000, "Failure": {"Message": "it does not run\nin time"}},
	{"ContainerHierarchyTexts": ["Pods", "stop"], "LeafNodeText": "first", "LeafNodeType": "It", "State": "passed"},
	{"LeafNodeType": "SynchronizedBeforeSuite", "State": "passed"}
]}]`

func TestParse(t *testing.T) {
	specs, err := Parse([]byte(reportOfOne))
	require.NoError(t, err)
	assert.Equal(t, []Spec{
		{Name: "[sig-node] Pods run", Container: "[sig-node] Pods", Node: "It", State: "failed", Why: "it does not run", Took: 3 * time.Second},
		{Name: "Pods stop first", Node: "It", State: "passed", Container: "Pods stop"},
		{Node: "SynchronizedBeforeSuite", State: "passed"},
	}, specs)
	_, err = Parse([]byte("nothing"))
	assert.ErrorContains(t, err, "read the suite's report")
}

// The program stands for ginkgo: it writes its arguments and the report.
func TestRunPassesTheSelectionAndReadsTheReport(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "ginkgo")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\nprintf '%s\\n' \"$@\" \"$OF\"\npwd\ncp one.json logs/first.json\nexit 1\n"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "one.json"), []byte(reportOfOne), 0o644))
	s := Suite{Program: program, Binary: filepath.Join(dir, "suite.test"), Args: []string{"--a"}, Env: []string{"OF=env"}, Logs: filepath.Join(dir, "logs"), Timeout: time.Hour,
		Printf: t.Logf}
	specs, err := s.Run(t.Context(), Selection{Name: "first", Focus: "x", Skip: []string{"y", "z"}, Labels: "!l", Procs: 3})
	require.NoError(t, err)
	assert.Len(t, specs, 3)
	log, err := os.ReadFile(filepath.Join(dir, "logs", "first.log"))
	require.NoError(t, err)
	assert.Equal(t, "run\n--no-color\n--procs=3\n--seed=1\n--timeout=1h0m0s\n--focus=x\n--json-report=first.json\n--output-dir="+s.Logs+
		"\n--skip=y|z\n--label-filter=!l\n"+s.Binary+"\n--\n--a\nenv\n"+dir+"\n", string(log))

	s.Command = func(ctx context.Context, name string, args ...string) *exec.Cmd {
		return exec.CommandContext(ctx, "sh", append([]string{"-c", `echo "in a machine"; exec "$0" "$@"`, name}, args...)...)
	}
	_, err = s.Run(t.Context(), Selection{Name: "first"})
	require.NoError(t, err)
	log, err = os.ReadFile(filepath.Join(dir, "logs", "first.log"))
	require.NoError(t, err)
	assert.Contains(t, string(log), "in a machine\nrun\n--no-color\n")
	s.Command = nil

	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho no such flag\nexit 2\n"), 0o755))
	_, err = s.Run(t.Context(), Selection{Name: "first"})
	assert.ErrorContains(t, err, "no such flag", "the report of an earlier run must not be read")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\necho timed out\necho '[]' >logs/first.json\nexit 1\n"), 0o755))
	_, err = s.Run(t.Context(), Selection{Name: "first"})
	assert.ErrorContains(t, err, "the report is empty: timed out")
}

func TestEveryStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		stop := every(time.Minute, func() { n++ })
		time.Sleep(150 * time.Second)
		stop()
		time.Sleep(time.Hour)
		assert.Equal(t, 2, n)
	})
}
