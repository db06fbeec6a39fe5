package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The agent is an example: short, without clients of the API server, and compiled by
// others from a copy.
func TestTheProgramIsSmallAndCanBeCopied(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	lines := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		lines += bytes.Count(text, []byte("\n"))
	}
	assert.LessOrEqual(t, lines, 250)

	const module = "github.com/kubeparts/kubeparts/"
	imports, err := exec.Command("go", "list", "-f", `{{join .Imports "\n"}}`, ".").Output()
	require.NoError(t, err)
	for path := range strings.FieldsSeq(string(imports)) {
		assert.NotContains(t, path, "/internal", "a copy cannot import it")
	}
	deps, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	t.Logf("%d lines, %d packages", lines, len(strings.Fields(string(deps))))
	for path := range strings.FieldsSeq(string(deps)) {
		for _, heavy := range []string{"k8s.io/client-go", module + "kube"} {
			assert.False(t, path == heavy || strings.HasPrefix(path, heavy+"/"), path)
		}
	}
}
