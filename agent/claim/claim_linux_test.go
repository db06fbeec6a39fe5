//go:build linux

package claim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// The pods of a running kubelet would be orphans of the agent.
func TestAnAgentDoesNotStartNextToAKubelet(t *testing.T) {
	own := "--root-dir=OWN/kubelet --pod-logs-dir=OWN/logs --cgroup-root=/their "
	for name, tc := range map[string]struct {
		comm, mounts, args string
		shares             string // ""; it may start
	}{
		"one as by default":       {"kubelet", "mnt:[1]", "--config=/none", "directory of pod logs /var/log/pods, runtime /run/containerd/containerd.sock"},
		"the runtime alone":       {"kubelet", "mnt:[1]", own + "--container-runtime-endpoint=unix:///run/containerd/containerd.sock", "runtime /run/containerd/containerd.sock"},
		"by a link to its socket": {"kubelet", "mnt:[1]", own + "--container-runtime-endpoint unix://OWN/link/containerd.sock", "runtime /run/containerd/containerd.sock"},
		"by its file":             {"kubelet", "mnt:[1]", "--root-dir=OWN/kubelet --config=OWN/config.yaml", "directory of pod logs /var/log/pods"},
		"logs alone":              {"kubelet", "mnt:[1]", "--root-dir OWN/kubelet --container-runtime-endpoint unix:///other.sock", "directory of pod logs /var/log/pods"},
		"the root":                {"kubelet", "mnt:[1]", "--root-dir=OWN/root --pod-logs-dir=OWN/logs --container-runtime-endpoint=unix:///other.sock", "root directory OWN/root"},
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
			mine := resources{rootDirectory: filepath.Join(dir, "root"), podLogs: "/var/log/pods", runtimeSocket: "/run/containerd/containerd.sock"}
			err = checkKubelets(mine, p.dir)
			if tc.shares == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrInUse)
			assert.EqualError(t, err, strings.ReplaceAll(tc.shares, "OWN", dir)+" in use by the kubelet with process ID 812, whose pods would be "+
				"removed as orphans: stop it (systemctl stop kubelet), or configure other paths")
		})
	}
	require.NoError(t, checkKubelets(resources{}, filepath.Join(t.TempDir(), "none")), "without /proc no kubelet is found")
}

func TestAProgramNamedKubeletDoesNotFindItself(t *testing.T) {
	p := newProcesses(t)
	require.NoError(t, os.Rename(filepath.Join(p.dir, "self"), filepath.Join(p.dir, "813")))
	require.NoError(t, os.Symlink("813", filepath.Join(p.dir, "self")))
	p.add("812", "kubelet", "mnt:[1]", "kubelet", "--root-dir=/r")
	mine := resources{rootDirectory: "/r"}
	require.ErrorIs(t, checkKubelets(mine, p.dir), ErrInUse)
	require.NoError(t, os.Remove(filepath.Join(p.dir, "self")))
	require.NoError(t, os.Symlink("812", filepath.Join(p.dir, "self")))
	require.NoError(t, checkKubelets(mine, p.dir))
}

// Any user can start a program called kubelet with any command line: it neither keeps the
// agent from starting nor chooses which files the agent opens.
func TestAKubeletOfAnotherUserIsNoKubelet(t *testing.T) {
	dir := t.TempDir()
	mine := resources{rootDirectory: filepath.Join(dir, "root"), runtimeSocket: "/run/containerd/containerd.sock"}
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
		"root's":                  {0, 0, "", []string{"--root-dir=" + mine[rootDirectory]}, true},
		"another user's":          {1000, 1000, "", []string{"--root-dir=" + mine[rootDirectory]}, false},
		"with set-user-ID":        {1000, 0, "", []string{"--root-dir=" + mine[rootDirectory]}, false},
		"that became root":        {0, 0, setuid, []string{"--root-dir=" + mine[rootDirectory]}, false},
		"another user's FIFO":     {1000, 1000, "", []string{"--config=" + fifo}, false},
		"root's FIFO":             {0, 0, "", []string{"--config=" + fifo, "--root-dir=" + mine[rootDirectory]}, true},
		"root's file of 8 TiB":    {0, 0, "", []string{"--config=" + huge, "--root-dir=" + mine[rootDirectory]}, true},
		"root's, an endless file": {0, 0, "", []string{"--config=/dev/zero", "--root-dir=" + mine[rootDirectory]}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProcesses(t)
			p.addOf(tc.uid, tc.euid, "812", "kubelet", "mnt:[1]", append([]string{"kubelet"}, tc.args...)...)
			if tc.exe != "" {
				require.NoError(t, os.Symlink(tc.exe, filepath.Join(p.dir, "812", "exe")))
			}
			err := make(chan error, 1)
			go func() { err <- checkKubelets(mine, p.dir) }()
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

// Fields that cannot be read do not hide the others; a file that cannot be read has none.
func TestAConfigurationIsReadLeniently(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	for path, want := range map[string]kubeletConfig{
		write("all", "podLogsDir: /l\ncgroupRoot: /c\ncgroupsPerQOS: false\ncontainerRuntimeEndpoint: unix:///s\nmaxPods: 7\n"): {"unix:///s", "/l", "/c", new(false)},
		write("json", `{"podLogsDir": "/l", "unknown": {}}`):                                                                    {PodLogsDir: "/l"},
		write("wrong type", "podLogsDir: [1]\ncgroupRoot: /c\n"):                                                                {CgroupRoot: "/c"},
		write("no object", "- 1\n"):   {},
		write("no YAML", "a: b: c"):   {},
		filepath.Join(dir, "missing"): {},
	} {
		assert.Equal(t, want, readConfig(path), path)
	}
}

func FuzzConfig(f *testing.F) {
	f.Add("podLogsDir: /l\n")
	f.Add("{")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "config")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		readConfig(path)
	})
}

func TestCgroupsAreSharedByTheirRoot(t *testing.T) {
	assert.Equal(t, "/", kubeletResources(nil)[cgroupRoot])
	assert.Equal(t, "/a/b", kubeletResources([]string{"kubelet", "--cgroup-root=/a/b"})[cgroupRoot])
	assert.NotContains(t, kubeletResources([]string{"kubelet", "--cgroups-per-qos=false"}), cgroupRoot)
}

func TestASecondAgentIsRejected(t *testing.T) {
	dir := t.TempDir()
	proc := newProcesses(t).dir
	take := func(root, socket string) (func(), error) {
		root = filepath.Join(dir, root)
		return Take(Config{Root: root, PodLogsDir: filepath.Join(root, "logs"), RuntimeEndpoint: "unix://" + filepath.Join(dir, socket), Proc: proc})
	}
	first, err := take("one", "a.sock")
	require.NoError(t, err)
	_, err = take("one", "b.sock")
	require.ErrorIs(t, err, ErrInUse)
	assert.EqualError(t, err, fmt.Sprintf("claim: root directory %s/one: in use: another agent uses it (process %d)", dir, os.Getpid()))
	_, err = take("two", "a.sock")
	require.ErrorIs(t, err, ErrInUse)
	assert.ErrorContains(t, err, "claim: runtime "+dir+"/a.sock: in use")
	other, err := take("two", "b.sock")
	require.NoError(t, err, "a rejected claim locks nothing")
	other()
	other()
	first()
	again, err := take("one", "a.sock")
	require.NoError(t, err)
	again()

	// If no lock can be created next to the socket, the runtime is used without one.
	without, err := take("one", "none/a.sock")
	require.NoError(t, err)
	without()

	_, err = Take(Config{Proc: proc})
	require.EqualError(t, err, "claim: Config.Root is empty")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	_, err = take("file/root", "a.sock")
	require.ErrorContains(t, err, "claim: create the root directory: ")
	assert.NotErrorIs(t, err, ErrInUse)
}

func TestOnlyConfiguredResourcesAreClaimed(t *testing.T) {
	assert.Equal(t, resources{rootDirectory: "/none"}, (&Config{Root: "/none", RuntimeEndpoint: "process"}).resources())
	assert.Equal(t, "/kubeparts", (&Config{Root: "/none", CgroupRoot: "kubeparts"}).resources()[cgroupRoot])
}
