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

// lookKubectl finds the client of the control plane's version, which is beside it.
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

// A Kubectl is the client that people have, as somebody who has a kubeconfig file.
// It may be used by many tests at once.
type Kubectl struct{ binary, kubeconfig, home string }

// NewKubectl finds the kubectl that belongs to the control plane. What it caches,
// and what it might read of a person's, is in a directory of the test's own. A test
// on a machine that has none is skipped or failed as Need does.
func NewKubectl(t testing.TB, kubeconfig string) *Kubectl {
	t.Helper()
	Need(t, "kubectl")
	binary, err := lookKubectl()
	if err != nil {
		t.Fatalf("lab: kubectl: %v", err)
	}
	return &Kubectl{binary: binary, kubeconfig: kubeconfig, home: t.TempDir()}
}

// Command returns a kubectl that has not been started. It is killed when ctx ends.
// Further environment, such as KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false, can be
// appended to its Env.
func (k *Kubectl) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, k.binary, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "KUBECTL_")
	})
	cmd.Env = append(cmd.Env, "KUBECONFIG="+k.kubeconfig, "HOME="+k.home, "NO_PROXY=*")
	return cmd
}
