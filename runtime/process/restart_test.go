//go:build linux || darwin

package process_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/internal/seedrun"
	"github.com/kubeparts/kubeparts/runtime/process"
)

// agent is the main function of a small agent: it creates a pod, starts containers in
// it until it is killed, and prints the IDs of started ones.
func agent(dir string) error {
	ctx := context.Background()
	rt, err := process.Open(process.Config{Dir: dir})
	if err != nil {
		return err
	}
	s, err := rt.RunPodSandbox(ctx, &runtimeapi.PodSandboxConfig{
		Metadata: &runtimeapi.PodSandboxMetadata{Name: "pod", Namespace: "default", Uid: fmt.Sprint(os.Getpid())},
	}, "")
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		cfg := sh(fmt.Sprint("c", i), os.Getenv("TEST_AGENT_SCRIPT"))
		cfg.WorkingDir = os.Getenv("TEST_AGENT_WORK")
		id, err := rt.CreateContainer(ctx, s, cfg, nil)
		if err != nil {
			return err
		}
		if err := rt.StartContainer(ctx, id); err != nil {
			return err
		}
		fmt.Println(id)
		if os.Getenv("TEST_AGENT_COUNT") == fmt.Sprint(i+1) {
			bufio.NewReader(os.Stdin).ReadString('\n')
			return nil
		}
	}
}

// runAgent starts this binary as an agent, which tests end with SIGKILL.
func runAgent(t *testing.T, dir, work, count, script string) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), "TEST_AGENT_DIR="+dir, "TEST_AGENT_WORK="+work, "TEST_AGENT_COUNT="+count, "TEST_AGENT_SCRIPT="+script)
	_, err = cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	return cmd, bufio.NewReader(out)
}

func TestAReopenedRuntimeFindsRunningAndExitedContainers(t *testing.T) {
	n := newNode(t)
	s := n.sandbox("pod")
	work := t.TempDir()
	stays := n.start(s, sh("stays", "sleep 1000"))
	cfg := sh("exits", "while ! test -e go; do sleep 0.01; done; exit 5")
	cfg.WorkingDir = work
	exits := n.start(s, cfg)
	created, err := n.CreateContainer(t.Context(), s, sh("created", "true"), nil)
	require.NoError(t, err)
	pid := n.pid(stays, "pid")

	require.NoError(t, n.Close(t.Context()))
	require.NoError(t, n.Close(t.Context()), "closing twice is no error")
	_, err = n.ListContainers(t.Context(), nil)
	require.Error(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(work, "go"), nil, 0o600))
	eventually(t, "exit is recorded without an agent", func() bool {
		_, err := os.Stat(filepath.Join(n.dir, "exits", exits+".json"))
		return err == nil
	})
	n.open(process.Config{})

	assert.Equal(t, runtimeapi.ContainerState_CONTAINER_RUNNING, n.status(stays).GetState())
	assert.Equal(t, pid, n.pid(stays, "pid"))
	assert.EqualValues(t, 5, n.status(exits).GetExitCode())
	assert.Equal(t, runtimeapi.ContainerState_CONTAINER_CREATED, n.status(created).GetState())
	require.NoError(t, n.StartContainer(t.Context(), created))
	require.NoError(t, n.StopContainer(t.Context(), stays, 0))
	assert.EqualValues(t, 137, n.status(stays).GetExitCode())
}

func TestAContainerOutlivesAKilledAgent(t *testing.T) {
	n := newNode(t)
	require.NoError(t, n.Close(t.Context()))
	cmd, out := runAgent(t, n.dir, t.TempDir(), "1", "sleep 1000")
	line, err := out.ReadString('\n')
	require.NoError(t, err)
	id := strings.TrimSpace(line)

	_, err = process.Open(process.Config{Dir: n.dir})
	require.ErrorContains(t, err, fmt.Sprintf("another agent uses it (process %d)", cmd.Process.Pid))

	require.NoError(t, cmd.Process.Kill())
	cmd.Wait()
	n.open(process.Config{})
	st := n.status(id)
	assert.Equal(t, runtimeapi.ContainerState_CONTAINER_RUNNING, st.GetState())
	require.NoError(t, syscall.Kill(n.pid(id, "pid"), 0))
	_, _, err = n.ExecSync(t.Context(), id, []string{"true"}, time.Minute)
	require.NoError(t, err)
	require.NoError(t, n.StopContainer(t.Context(), id, 10))
	assert.EqualValues(t, 143, n.status(id).GetExitCode(), "sh and sleep die of TERM")
}

// Whenever an agent is killed, each running process is a running container of the next
// agent, and no container has run twice.
func TestAKillAtAnyTimeLeavesNoUnlistedContainer(t *testing.T) {
	n := newNode(t)
	random := seedrun.Rand(t)
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	for range rounds {
		work := t.TempDir()
		require.NoError(t, n.Close(t.Context()))
		cmd, out := runAgent(t, n.dir, work, "-1", `echo $KUBEPARTS_CONTAINER_ID > $$; exec sleep 1000`)
		for range random.IntN(3) {
			_, err := out.ReadString('\n')
			require.NoError(t, err)
		}
		<-time.After(time.Duration(random.Int64N(int64(40 * time.Millisecond))))
		require.NoError(t, cmd.Process.Kill())
		cmd.Wait()
		n.open(process.Config{})

		// Starts in progress continue; wait until the last one has completed.
		eventually(t, "starts are decided", func() bool {
			list, err := n.ListContainers(t.Context(), nil)
			require.NoError(t, err)
			for _, c := range list {
				if c.GetState() != runtimeapi.ContainerState_CONTAINER_CREATED {
					continue
				}
				if _, err := os.Stat(filepath.Join(n.dir, "containers", c.GetId(), "process.json")); err == nil {
					return false
				}
			}
			return true
		})
		<-time.After(30 * time.Millisecond) // for the script's first line
		files, err := os.ReadDir(work)
		require.NoError(t, err)
		ran := map[string]bool{}
		for _, f := range files {
			data, err := os.ReadFile(filepath.Join(work, f.Name()))
			require.NoError(t, err)
			id := strings.TrimSpace(string(data))
			if id == "" {
				continue
			}
			assert.False(t, ran[id], "%s ran twice", id)
			ran[id] = true
			// The record of a process follows its start.
			eventually(t, id+" runs", func() bool { return n.status(id).GetState() == runtimeapi.ContainerState_CONTAINER_RUNNING })
			assert.Equal(t, f.Name(), fmt.Sprint(n.pid(id, "pid")))
		}
		list, err := n.ListPodSandbox(t.Context(), nil)
		require.NoError(t, err)
		for _, s := range list {
			require.NoError(t, n.RemovePodSandbox(t.Context(), s.GetId()))
		}
		for _, f := range files {
			var pid int
			fmt.Sscan(f.Name(), &pid)
			assert.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
		}
	}
}

func TestAContainerWhoseSupervisorIsKilledExitsWithAReason(t *testing.T) {
	n := newNode(t)
	s := n.sandbox("pod")
	id := n.start(s, sh("app", "sleep 1000 & echo $!; wait"))
	n.logged("pod", "app", "stdout F")
	var child int
	_, after, _ := strings.Cut(n.log("pod", "app"), " F ")
	_, err := fmt.Sscan(after, &child)
	require.NoError(t, err)
	pid := n.pid(id, "pid")
	require.NoError(t, syscall.Kill(n.pid(id, "supervisorPid"), syscall.SIGKILL))

	st := n.exited(id)
	assert.EqualValues(t, 137, st.GetExitCode())
	assert.Equal(t, "ContainerStatusUnknown", st.GetReason())
	assert.Contains(t, st.GetMessage(), "supervisor")
	for _, pid := range []int{pid, child} {
		eventually(t, "the process goes with its supervisor", func() bool { return !running(pid) })
	}
	before := st.GetFinishedAt()
	require.NoError(t, n.Close(t.Context()))
	n.open(process.Config{})
	assert.Equal(t, before, n.status(id).GetFinishedAt(), "the same after a restart")
}

// running reports whether the process exists and is not a zombie.
func running(pid int) bool {
	if goruntime.GOOS == "linux" {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err == nil && !strings.Contains(string(data), ") Z ")
	}
	return syscall.Kill(pid, 0) == nil
}

func TestTheSecondRuntimeOnADirectoryIsRefused(t *testing.T) {
	n := newNode(t)
	_, err := process.Open(process.Config{Dir: n.dir})
	require.ErrorContains(t, err, "another agent uses it")
	require.ErrorContains(t, err, n.dir)
}

func TestACorruptRecordIsNamedAndHarmsNoOther(t *testing.T) {
	n := newNode(t)
	s := n.sandbox("pod")
	good := n.start(s, sh("good", "sleep 1000"))
	bad, err := n.CreateContainer(t.Context(), s, sh("bad", "true"), nil)
	require.NoError(t, err)
	badExit := n.start(s, sh("bad-exit", "exit 3"))
	n.exited(badExit)
	badProcess := n.start(s, sh("bad-process", "sleep 1000"))
	require.NoError(t, n.Close(t.Context()))

	file := func(elem ...string) string { return filepath.Join(append([]string{n.dir}, elem...)...) }
	require.NoError(t, os.Truncate(file("containers", bad, "container.json"), 20))
	require.NoError(t, os.WriteFile(file("exits", badExit+".json"), []byte("{}"), 0o600))
	require.NoError(t, os.WriteFile(file("containers", badProcess, "process.json"), []byte(`{"version":1,"id":"`+badProcess+`","process":{"pid":-1}}`), 0o600))
	require.NoError(t, os.Mkdir(file("containers", "lost+found"), 0o700))

	var log bytes.Buffer
	n.open(process.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, path := range []string{
		file("containers", bad, "container.json"), file("exits", badExit+".json"),
		file("containers", badProcess, "process.json"), file("containers", "lost+found", "container.json"),
	} {
		assert.Contains(t, log.String(), "corrupt state file\" path="+path)
	}
	assert.NotContains(t, log.String(), good)
	assert.Equal(t, runtimeapi.ContainerState_CONTAINER_RUNNING, n.status(good).GetState())
	st := n.status(badExit)
	assert.Equal(t, runtimeapi.ContainerState_CONTAINER_EXITED, st.GetState())
	assert.Equal(t, "ContainerStatusUnknown", st.GetReason())
	assert.Contains(t, st.GetMessage(), badExit+".json")
	assert.Equal(t, runtimeapi.ContainerState_CONTAINER_RUNNING, n.status(badProcess).GetState())
	if linux {
		require.NoError(t, n.StopContainer(t.Context(), badProcess, 5), "found by the container ID in its environment")
		assert.EqualValues(t, 137, n.status(badProcess).GetExitCode())
	}
	resp, err := n.Status(t.Context(), true)
	require.NoError(t, err)
	assert.Contains(t, resp.GetInfo()["corrupt"], bad)
}

func TestADirectoryOfAnotherVersionOrOfSomethingElseIsRefused(t *testing.T) {
	n := newNode(t)
	other := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(other, "version"), []byte("99\n"), 0o600))
	_, err := process.Open(process.Config{Dir: other})
	require.ErrorContains(t, err, `format "99"`)
	_, err = process.Open(process.Config{Dir: filepath.Dir(n.dir)})
	require.ErrorContains(t, err, "but no file \"version\"")
}
