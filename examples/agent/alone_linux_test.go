//go:build linux

package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/dirlock"
)

// A processes directory is one like /proc.
type processes struct {
	t   *testing.T
	dir string
}

func newProcesses(t *testing.T) *processes {
	p := &processes{t, t.TempDir()}
	p.add("self", "agent", "mnt:[1]")
	p.add("7", "containerd", "mnt:[1]", "containerd")
	return p
}

func (p *processes) add(pid, comm, mounts string, args ...string) {
	p.t.Helper()
	dir := filepath.Join(p.dir, pid)
	require.NoError(p.t, os.MkdirAll(filepath.Join(dir, "ns"), 0o755))
	require.NoError(p.t, os.WriteFile(filepath.Join(dir, "comm"), []byte(comm+"\n"), 0o644))
	require.NoError(p.t, os.WriteFile(filepath.Join(dir, "cmdline"), []byte(strings.Join(append(args, ""), "\x00")), 0o644))
	require.NoError(p.t, os.Symlink(mounts, filepath.Join(dir, "ns", "mnt")))
}

// An agent beside a live kubelet would take its pods for orphans.
func TestAnAgentDoesNotStartBesideAKubelet(t *testing.T) {
	own := "--root-dir=OWN/kubelet --pod-logs-dir=OWN/logs --cgroup-root=/their "
	for name, tc := range map[string]struct {
		comm, mounts, args string
		shares             string // ""; it may start
	}{
		"one as by default":       {"kubelet", "mnt:[1]", "--config=/none", "--pod-logs-dir=/var/log/pods, --runtime=/run/containerd/containerd.sock"},
		"the runtime alone":       {"kubelet", "mnt:[1]", own + "--container-runtime-endpoint=unix:///run/containerd/containerd.sock", "--runtime=/run/containerd/containerd.sock"},
		"by a link to its socket": {"kubelet", "mnt:[1]", own + "--container-runtime-endpoint unix://OWN/link/containerd.sock", "--runtime=/run/containerd/containerd.sock"},
		"by its file":             {"kubelet", "mnt:[1]", "--root-dir=OWN/kubelet --config=OWN/config.yaml", "--pod-logs-dir=/var/log/pods"},
		"logs alone":              {"kubelet", "mnt:[1]", "--root-dir OWN/kubelet --container-runtime-endpoint unix:///other.sock", "--pod-logs-dir=/var/log/pods"},
		"the root":                {"kubelet", "mnt:[1]", "--root-dir=OWN/root --pod-logs-dir=OWN/logs --container-runtime-endpoint=unix:///other.sock", "--root=OWN/root"},
		"nothing":                 {"kubelet", "mnt:[1]", own + "--container-runtime-endpoint=unix:///other.sock", ""},
		"one in a container":      {"kubelet", "mnt:[2]", "", ""},
		"another program":         {"kubelet-csr", "mnt:[1]", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			require.NoError(t, err)
			_ = os.Symlink("/run/containerd", filepath.Join(dir, "link"))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(
				"apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ncontainerRuntimeEndpoint: unix:///other.sock\n"), 0o600))
			if _, err := os.Stat("/run/containerd"); err != nil && strings.Contains(tc.args, "/link/") {
				t.Skip("there is nothing for a link to lead to")
			}
			p := newProcesses(t)
			p.add("812", tc.comm, tc.mounts, append([]string{"/usr/bin/kubelet"}, strings.Fields(strings.ReplaceAll(tc.args, "OWN", dir))...)...)
			mine := claims{"root": filepath.Join(dir, "root"), "pod-logs-dir": "/var/log/pods", "runtime": "/run/containerd/containerd.sock"}
			err = besideKubelets(mine, p.dir)
			if tc.shares == "" {
				require.NoError(t, err)
				return
			}
			assert.EqualError(t, err, "a kubelet runs here (process 812) and has the same "+strings.ReplaceAll(tc.shares, "OWN", dir)+
				": its pods would be taken for leftovers, and be removed; stop it first (systemctl stop kubelet), or give the agent its own")
		})
	}
	require.NoError(t, besideKubelets(claims{}, filepath.Join(t.TempDir(), "none")), "where there is no /proc nothing is known")
}

func TestCgroupsAreSharedByTheirRoot(t *testing.T) {
	assert.Equal(t, "/", kubeletClaims(nil)["cgroup-root"])
	assert.Equal(t, "/a/b", kubeletClaims([]string{"kubelet", "--cgroup-root=/a/b"})["cgroup-root"])
	assert.NotContains(t, kubeletClaims([]string{"kubelet", "--cgroups-per-qos=false"}), "cgroup-root")
}

// Two agents have neither the same root nor the same runtime.
func TestASecondAgentIsRefused(t *testing.T) {
	dir := t.TempDir()
	agent := func(root, socket string) *assembly {
		o, err := parseFlags([]string{"--manifests=" + dir, "--root=" + filepath.Join(dir, root), "--pod-logs-dir=" + filepath.Join(dir, root, "logs"), "--runtime=unix://" + filepath.Join(dir, socket)})
		require.NoError(t, err)
		return &assembly{opts: o, logger: slog.New(slog.DiscardHandler)}
	}
	proc := newProcesses(t).dir
	first, err := agent("one", "a.sock").claim(proc)
	require.NoError(t, err)
	_, err = agent("one", "b.sock").claim(proc)
	require.ErrorIs(t, err, dirlock.ErrHeld)
	assert.EqualError(t, err, fmt.Sprintf("--root=%s/one can't be used; choose another, or end the agent that has it: another agent uses it (process %d)", dir, os.Getpid()))
	_, err = agent("two", "a.sock").claim(proc)
	require.ErrorIs(t, err, dirlock.ErrHeld)
	assert.ErrorContains(t, err, "--runtime=unix://"+dir+"/a.sock can't be used; choose another, or end the agent that has it")
	other, err := agent("two", "b.sock").claim(proc)
	require.NoError(t, err, "what the refused ones had is free")
	other()
	first()
	again, err := agent("one", "a.sock").claim(proc)
	require.NoError(t, err)
	again()

	// Where no lock can be had beside the socket, the runtime is used as it is.
	nowhere, err := agent("one", "none/a.sock").claim(proc)
	require.NoError(t, err)
	nowhere()
}
