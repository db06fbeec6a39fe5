package isolate_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/isolate"
)

// The isolated process has an address and a process ID space of its own, and directories that are mounted in it are
// not mounted outside.
func TestIntegrationTheProcessIsIsolated(t *testing.T) {
	if isolate.Isolated() {
		return
	}
	lab.Need(t, "linux", "root", "ip")
	for name, dir := range map[string]string{"all": t.TempDir(), "mounts only": ""} {
		t.Run(name, func(t *testing.T) {
			machine := t.TempDir()
			t.Setenv(machineVariable, machine)
			var out bytes.Buffer
			code, err := isolate.Run(t.Context(), isolate.Config{Args: []string{"-test.run=^TestInside$", "-test.v"}, Out: &out, Dir: dir})
			require.NoError(t, err)
			require.Zero(t, code, "%s", &out)
			assert.Contains(t, out.String(), "inside: file of the run\n")
			assert.NoFileExists(t, filepath.Join(machine, "file"))
			if dir != "" {
				assert.Contains(t, out.String(), "inside: address 192.0.2.2/24\n")
				assert.Contains(t, out.String(), fmt.Sprintf("inside: temporary files in %s\n", dir))
			}
		})
	}
}

// machineVariable names a directory of the machine.
const machineVariable = "KUBEPARTS_TEST_MACHINE_DIR"

func TestInside(t *testing.T) {
	if !isolate.Isolated() {
		t.Skip("it is the isolated process of another test")
	}
	machine := os.Getenv(machineVariable)
	remove, err := isolate.Directories(t.TempDir(), machine)
	require.NoError(t, err)
	file := filepath.Join(machine, "file")
	require.NoError(t, os.WriteFile(file, []byte("file of the run"), 0o600))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	fmt.Printf("inside: %s\n", text)
	fmt.Printf("inside: temporary files in %s\n", os.TempDir())
	addresses, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range addresses {
		fmt.Printf("inside: address %s\n", a)
	}
	require.NoError(t, remove())
	assert.NoFileExists(t, file)
}
