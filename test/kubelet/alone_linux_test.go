//go:build linux

package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/internal/dirlock"
	"github.com/kubeparts/kubeparts/internal/untrusted"
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
	p.addOf(os.Geteuid(), os.Geteuid(), pid, comm, mounts, args...)
}

func (p *processes) addOf(uid, euid int, pid, comm, mounts string, args ...string) {
	p.t.Helper()
	dir := filepath.Join(p.dir, pid)
	status := fmt.Sprintf("Name:\t%s\nUid:\t%d\t%d\t%d\t%d\nGid:\t0\t0\t0\t0\n", comm, uid, euid, euid, euid)
	require.NoError(p.t, os.MkdirAll(filepath.Join(dir, "ns"), 0o755))
	require.NoError(p.t, os.WriteFile(filepath.Join(dir, "comm"), []byte(comm+"\n"), 0o644))
	require.NoError(p.t, os.WriteFile(filepath.Join(dir, "status"), []byte(status), 0o644))
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

// Any user can start a program called kubelet with any command line: it neither keeps the
// agent from starting nor chooses which files the agent opens.
func TestAKubeletOfAnotherUserIsNoKubelet(t *testing.T) {
	dir := t.TempDir()
	mine := claims{"root": filepath.Join(dir, "root"), "runtime": "/run/containerd/containerd.sock"}
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o666))
	huge := filepath.Join(dir, "huge")
	require.NoError(t, os.WriteFile(huge, nil, 0o644))
	require.NoError(t, os.Truncate(huge, 8<<40))
	setuid := filepath.Join(dir, "sudo")
	require.NoError(t, os.WriteFile(setuid, nil, 0o755))
	require.NoError(t, os.Chmod(setuid, 0o755|os.ModeSetuid))
	for name, tc := range map[string]struct {
		uid, euid int
		exe       string
		args      []string
		shares    bool
	}{
		"root's":                  {0, 0, "", []string{"--root-dir=" + mine["root"]}, true},
		"another user's":          {1000, 1000, "", []string{"--root-dir=" + mine["root"]}, false},
		"with set-user-ID":        {1000, 0, "", []string{"--root-dir=" + mine["root"]}, false},
		"that became root":        {0, 0, setuid, []string{"--root-dir=" + mine["root"]}, false},
		"another user's FIFO":     {1000, 1000, "", []string{"--config=" + fifo}, false},
		"root's FIFO":             {0, 0, "", []string{"--config=" + fifo, "--root-dir=" + mine["root"]}, true},
		"root's file of 8 TiB":    {0, 0, "", []string{"--config=" + huge, "--root-dir=" + mine["root"]}, true},
		"root's, an endless file": {0, 0, "", []string{"--config=/dev/zero", "--root-dir=" + mine["root"]}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProcesses(t)
			p.addOf(tc.uid, tc.euid, "812", "kubelet", "mnt:[1]", append([]string{"kubelet"}, tc.args...)...)
			if tc.exe != "" {
				require.NoError(t, os.Symlink(tc.exe, filepath.Join(p.dir, "812", "exe")))
			}
			err := make(chan error, 1)
			go func() { err <- besideKubelets(mine, p.dir) }()
			select {
			case err := <-err:
				assert.Equal(t, tc.shares, err != nil, "%v", err)
			case <-time.After(time.Minute):
				t.Fatal("the agent's start is blocked")
			}
		})
	}
	assert.Nil(t, uidsIn("Name:\tx\n"))
	assert.Nil(t, uidsIn("Uid:\tx\n"))
	assert.Equal(t, []int{1, 2, 3, 4}, uidsIn("Name:\tx\nUid:\t1\t2\t3\t4\n"))
}

// A configuration is a regular file of a limited size.
func TestAConfigurationIsReadWithABound(t *testing.T) {
	dir := t.TempDir()
	fifo, huge := filepath.Join(dir, "fifo"), filepath.Join(dir, "huge")
	require.NoError(t, syscall.Mkfifo(fifo, 0o666))
	require.NoError(t, os.WriteFile(huge, nil, 0o644))
	require.NoError(t, os.Truncate(huge, 8<<40))
	for path, want := range map[string]error{
		fifo: untrusted.ErrNotRegular, "/dev/zero": untrusted.ErrNotRegular, dir: untrusted.ErrNotRegular, huge: untrusted.ErrTooLarge,
	} {
		_, _, err := readConfig(path, "")
		assert.ErrorIs(t, err, want, path)
	}
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
