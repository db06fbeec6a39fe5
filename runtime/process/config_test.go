//go:build linux || darwin

package process_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/process"
)

func TestNewValidatesItsConfig(t *testing.T) {
	_, err := process.Open(process.Config{})
	require.EqualError(t, err, "process: Config.Dir is empty")
	_, err = process.Open(process.Config{Dir: t.TempDir(), StartTimeout: -1})
	require.ErrorContains(t, err, "Config.StartTimeout")
	_, err = process.Open(process.Config{Dir: t.TempDir(), Supervisor: []string{"/no/such/program"}})
	require.ErrorContains(t, err, "/no/such/program")
}

func TestInvalidConfigsAreRejectedAtCreation(t *testing.T) {
	n := newNode(t)
	s := n.sandbox("pod")
	file := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, tc := range map[string]struct {
		change func(*runtimeapi.ContainerConfig)
		want   string
	}{
		"no command": {func(c *runtimeapi.ContainerConfig) { c.Command, c.Args = nil, nil }, "no command: there is no image"},
		"not found":  {func(c *runtimeapi.ContainerConfig) { c.Command = []string{"nginx-that-is-not"} }, `command "nginx-that-is-not": not found in PATH`},
		"no file":    {func(c *runtimeapi.ContainerConfig) { c.Command = []string{"/no/such/file"} }, `command "/no/such/file": stat /no/such/file`},
		"data":       {func(c *runtimeapi.ContainerConfig) { c.Command = []string{file} }, "not executable"},
		"directory":  {func(c *runtimeapi.ContainerConfig) { c.Command = []string{"/tmp"} }, "is a directory"},
		"cwd":        {func(c *runtimeapi.ContainerConfig) { c.WorkingDir = "/no/such/dir" }, "working directory: stat /no/such/dir"},
		"tty":        {func(c *runtimeapi.ContainerConfig) { c.Tty = true }, "terminal"},
		"log path":   {func(c *runtimeapi.ContainerConfig) { c.LogPath = "../../etc/passwd" }, "is outside the log directory"},
		"no name":    {func(c *runtimeapi.ContainerConfig) { c.Metadata = nil }, "no name"},
		"user name": {func(c *runtimeapi.ContainerConfig) {
			c.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{RunAsUsername: "no-such-user"}}
		}, "no-such-user"},
	} {
		cfg := sh("app", "true")
		tc.change(cfg)
		_, err := n.CreateContainer(t.Context(), s, cfg, nil)
		assert.ErrorContains(t, err, tc.want, name)
		assert.Equal(t, codes.InvalidArgument, status.Code(err), name)
	}
	_, err := n.CreateContainer(t.Context(), "absent", sh("app", "true"), nil)
	assert.Equal(t, codes.NotFound, status.Code(err))
}

func TestACommandThatCannotBeExecutedExitsWithStartError(t *testing.T) {
	n := newNode(t)
	s := n.sandbox("pod")
	file := filepath.Join(t.TempDir(), "garbage")
	require.NoError(t, os.WriteFile(file, []byte("\x7fELF but not really"), 0o700))
	cfg := sh("app", "")
	cfg.Command, cfg.Args = []string{file}, nil
	id, err := n.CreateContainer(t.Context(), s, cfg, nil)
	require.NoError(t, err)
	require.ErrorContains(t, n.StartContainer(t.Context(), id), file)
	st := n.status(id)
	assert.Equal(t, runtimeapi.ContainerState_CONTAINER_EXITED, st.GetState())
	assert.EqualValues(t, 128, st.GetExitCode())
	assert.Equal(t, "StartError", st.GetReason())
	assert.Contains(t, st.GetMessage(), file)
}

func TestTheEnvironmentAndTheWorkingDirectoryAreSet(t *testing.T) {
	n := newNode(t)
	t.Setenv("AGENT_SECRET", "leaks")
	s := n.sandbox("pod")
	cfg := sh("app", "pwd; env; echo $$; exec cat")
	cfg.Envs = []*runtimeapi.KeyValue{
		{Key: "A", Value: []byte("1")}, {Key: "A", Value: []byte("2")}, {Key: "HOME", Value: []byte("/h")}, {Key: "RAW", Value: []byte("\xff")},
	}
	cfg.Mounts = []*runtimeapi.Mount{{ContainerPath: "/dev/termination-log", HostPath: "/host/term"}}
	id := n.start(s, cfg)
	n.exited(id)
	var lines []string
	for line := range strings.Lines(n.log("pod", "app")) {
		_, text, _ := strings.Cut(strings.TrimSpace(line), " F ")
		lines = append(lines, text)
	}
	assert.Contains(t, lines[0], filepath.Join(n.dir, "containers", id, "work"))
	assert.Contains(t, lines, "A=2")
	assert.NotContains(t, lines, "A=1")
	assert.Contains(t, lines, "HOME=/h")
	assert.Contains(t, lines, "RAW=\xff")
	assert.Contains(t, lines, "PATH="+os.Getenv("PATH"))
	assert.Contains(t, lines, "KUBEPARTS_CONTAINER_ID="+id)
	assert.Contains(t, lines, "KUBEPARTS_TERMINATION_LOG=/host/term")
	assert.NotContains(t, strings.Join(lines, "\n"), "AGENT_SECRET")
	assert.NotContains(t, strings.Join(lines, "\n"), "SUPERVISOR")
	assert.Equal(t, "/host/term", n.status(id).GetMounts()[0].GetHostPath())

	cfg = sh("elsewhere", "pwd -P")
	cfg.WorkingDir = "/"
	n.exited(n.start(s, cfg))
	assert.Contains(t, n.log("pod", "elsewhere"), " F /\n")
}

func TestDescriptorsAreNotInherited(t *testing.T) {
	if !linux {
		t.Skip("needs /proc")
	}
	n := newNode(t)
	s := n.sandbox("pod")
	n.exited(n.start(s, sh("app", "ls /proc/self/fd")))
	assert.Equal(t, 4, strings.Count(n.log("pod", "app"), "\n"), "stdin, stdout, stderr and that of ls: %s", n.log("pod", "app"))
}

func TestRootCanBeAnyUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	n := newNode(t)
	s := n.sandbox("pod")
	cfg := sh("app", "id -u; id -g; id -G; touch here; grep NoNewPrivs /proc/self/status || true")
	cfg.Linux = &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{
		RunAsUser: &runtimeapi.Int64Value{Value: 54321}, RunAsGroup: &runtimeapi.Int64Value{Value: 54322},
		SupplementalGroups: []int64{54323}, NoNewPrivs: true,
	}}
	// Let other users enter the parents of the state directory.
	for dir := n.dir; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o711))
	}
	id := n.start(s, cfg)
	st := n.exited(id)
	log := n.log("pod", "app")
	assert.EqualValues(t, 0, st.GetExitCode(), log)
	for _, want := range []string{" F 54321\n", " F 54322\n", " F 54322 54323\n"} {
		assert.Contains(t, log, want)
	}
	if linux {
		assert.Contains(t, log, "NoNewPrivs:\t1")
	}
	assert.EqualValues(t, 54321, st.GetUser().GetLinux().GetUid())
}

func TestStartFailsWithoutACallOfSupervise(t *testing.T) {
	n := newNode(t)
	for how, want := range map[string]string{
		"end":   "it printed: unknown subcommand",
		"agent": "the program does not call Supervise",
		"hang":  "did not answer within 2s",
	} {
		t.Run(how, func(t *testing.T) {
			t.Setenv("TEST_FORGETFUL", how)
			t.Setenv("TEST_FORGETFUL_DIR", n.dir)
			require.NoError(t, n.Close(t.Context()))
			timeout := 90 * time.Second
			if how == "hang" {
				timeout = 2 * time.Second
			}
			n.open(process.Config{StartTimeout: timeout})
			s := n.sandbox(how)
			id, err := n.CreateContainer(t.Context(), s, sh("app", "true"), nil)
			require.NoError(t, err)
			err = n.StartContainer(t.Context(), id)
			require.ErrorContains(t, err, "if code, ok := process.Supervise(); ok { os.Exit(code) }")
			require.ErrorContains(t, err, want)
			assert.Equal(t, runtimeapi.ContainerState_CONTAINER_CREATED, n.status(id).GetState(), "nothing was done")
			require.NoError(t, os.Unsetenv("TEST_FORGETFUL"))
			require.NoError(t, n.StartContainer(t.Context(), id), "the start can be retried")
		})
	}
}

func TestAStoppedSupervisorStopsItsContainer(t *testing.T) {
	n := newNode(t)
	id := n.start(n.sandbox("pod"), sh("app", "trap 'exit 4' TERM; echo ready; while :; do sleep 0.01; done"))
	n.logged("pod", "app", "ready")
	require.NoError(t, syscall.Kill(n.pid(id, "supervisorPid"), syscall.SIGTERM))
	assert.EqualValues(t, 4, n.exited(id).GetExitCode())
}
