//go:build linux || darwin

package process_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestBothStreamsAndLongAndUnendedLinesAreInTheLog(t *testing.T) {
	n := newNode(t)
	s := n.sandbox("pod")
	script := `echo out; echo err >&2; printf 'half '; sleep 0.05; echo line; head -c 40000 /dev/zero | tr '\0' x; echo; printf 'no newline'`
	n.exited(n.start(s, sh("app", script)))
	var out []string
	for line := range strings.Lines(n.log("pod", "app")) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		require.Len(t, f, 4)
		if f[1] == "stderr" {
			assert.Equal(t, []string{"F", "err"}, f[2:])
			continue
		}
		out = append(out, f[2]+" "+f[3])
	}
	x := strings.Repeat("x", 16<<10)
	assert.Equal(t, []string{"F out", "F half line", "P " + x, "P " + x, "F " + x[:40000-2*len(x)], "P no newline"}, out)
}

func TestAReopenedLogContinuesInANewFile(t *testing.T) {
	n := newNode(t)
	s := n.sandbox("pod")
	cfg := sh("app", `echo before; while ! test -e go; do sleep 0.01; done; echo after; while test -e go; do sleep 0.01; done`)
	cfg.WorkingDir = t.TempDir()
	id := n.start(s, cfg)
	n.logged("pod", "app", "before")
	path := filepath.Join(n.logs, "pod", "app", "0.log")
	require.NoError(t, os.Rename(path, path+".old"))
	require.NoError(t, n.ReopenContainerLog(t.Context(), id))
	assert.FileExists(t, path)
	require.NoError(t, os.WriteFile(filepath.Join(cfg.WorkingDir, "go"), nil, 0o600))
	n.logged("pod", "app", "after")
	old, err := os.ReadFile(path + ".old")
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(old), "\n"))
	require.NoError(t, os.Remove(filepath.Join(cfg.WorkingDir, "go")))
	n.exited(id)
	require.NoError(t, os.Rename(path, path+".2"))
	assert.Equal(t, codes.FailedPrecondition, status.Code(n.ReopenContainerLog(t.Context(), id)))
	assert.NoFileExists(t, path)
}
