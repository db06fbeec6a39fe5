package lab

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// lookKubectl finds the kubectl of the control plane's version, in the same directory.
func lookKubectl() (string, error) {
	dir, err := assetsDir()
	if err != nil {
		return "", err
	}
	return exec.LookPath(filepath.Join(dir, "kubectl"))
}

func kubectlInstalled() error {
	_, err := lookKubectl()
	return err
}

// A Kubectl runs kubectl with a kubeconfig file. Safe for concurrent use.
type Kubectl struct{ binary, kubeconfig, home string }

// NewKubectl finds the kubectl that belongs to the control plane. Its cache and its home
// directory are in a directory of the test. If the machine has no kubectl, the test is
// skipped or fails as with Need.
func NewKubectl(t testing.TB, kubeconfig string) *Kubectl {
	t.Helper()
	Need(t, "kubectl")
	binary, err := lookKubectl()
	if err != nil {
		t.Fatalf("lab: kubectl: %v", err)
	}
	return &Kubectl{binary: binary, kubeconfig: kubeconfig, home: t.TempDir()}
}

// Command returns a kubectl that has not been started. It is killed when ctx is done.
// Additional environment, such as KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false, can be
// appended to its Env.
func (k *Kubectl) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, k.binary, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "KUBECTL_")
	})
	cmd.Env = append(cmd.Env, "KUBECONFIG="+k.kubeconfig, "HOME="+k.home, "NO_PROXY=*")
	return cmd
}
