package lab

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestProblemsLeaveOutRoutine(t *testing.T) {
	c := child{log: filepath.Join(t.TempDir(), "log")}
	require.NoError(t, os.WriteFile(c.log, []byte(`time="2026-11-23T22:23:22Z" level=error msg="first"
time="2026-11-23T22:23:22Z" level=info msg="StopPodSandbox level=error "
panic: second
{"level":"info","msg":"compacted"}
{"level":"warn","msg":"third"}
I1123 22:23:23.000000   1 main.go:1] "Started"
E1123 22:23:23.000000   1 main.go:2] "fourth"
`), 0o600))
	assert.Equal(t, `panic: second
{"level":"warn","msg":"third"}
E1123 22:23:23.000000   1 main.go:2] "fourth"`, c.problems(3))
	assert.Equal(t, `E1123 22:23:23.000000   1 main.go:2] "fourth"`, c.tail(1))

	c.log += ".missing"
	assert.Contains(t, c.problems(3), c.log)
}
