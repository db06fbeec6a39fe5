package host_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/cgroups/host"
	"github.com/kubeparts/kubeparts/internal/lab"
)

// asChild makes the test binary a process of a cgroup: it moves itself there, and runs
// the action that the variable specifies.
const asChild = "KUBEPARTS_TEST_CHILD"

func TestMain(m *testing.M) {
	if act := os.Getenv(asChild); act != "" {
		child(act)
	}
	os.Exit(m.Run())
}

func child(act string) {
	if what := map[string]func() error{"delegate": delegated, "read-only": readOnly, "without": without}[act]; what != nil {
		if err := what(); err != nil {
			fmt.Println(err)
			os.Exit(5)
		}
		os.Exit(0)
	}
	for dir := range strings.SplitSeq(os.Getenv(asChild+"_DIRS"), ":") {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0); err != nil && !os.IsNotExist(err) { // devices of v1 are left to the runtime
			fmt.Println("move:", err)
			os.Exit(3)
		}
	}
	what, arg, _ := strings.Cut(act, "=")
	n, _ := strconv.Atoi(arg)
	fmt.Println("in")
	switch what {
	case "sleep":
		time.Sleep(time.Hour)
	case "memory": // touch n MiB
		memory, err := syscall.Mmap(-1, 0, n<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
		for i := 0; err == nil && i < len(memory); i += 4096 {
			memory[i] = 1
		}
		fmt.Println("touched", err)
		time.Sleep(time.Hour)
	case "fork": // another process
		fmt.Println("fork:", exec.Command(os.Args[0], "-test.run=^$").Start())
	case "burn": // n milliseconds of CPU time
		began := time.Now()
		used := func() int64 {
			var r syscall.Rusage
			_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r)
			return r.Utime.Nano() + r.Stime.Nano()
		}
		for first := used(); used()-first < int64(n)*1e6; { // the time before the move does not count
		}
		fmt.Println("burnt", time.Since(began).Milliseconds())
	}
	os.Exit(0)
}

// run starts the test binary in the cgroup.
func run(t *testing.T, tree *host.Tree, name cgroups.Name, act string) (cmd *exec.Cmd, output func() string) {
	t.Helper()
	require.NoError(t, tree.Apply(t.Context(), name, cgroups.Resources{}))
	var out strings.Builder
	cmd = exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), asChild+"="+act, asChild+"_DIRS="+strings.Join(tree.Dirs(name), ":"))
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Start())
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return cmd, func() string { <-done; return out.String() }
}

// eventually waits until ok returns true, on a busy machine.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(90 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("not in 20 s: " + what)
		}
	}
}

// driver is the driver for this machine.
func driver() cgroups.Driver {
	if lab.InsideSystemd() {
		return cgroups.Systemd
	}
	return cgroups.Cgroupfs
}

// needCgroupfs skips a test whose process creates cgroups itself.
func needCgroupfs(t *testing.T) {
	t.Helper()
	if driver() != cgroups.Cgroupfs {
		t.Skip("it is about the driver cgroupfs")
	}
}

// needRealCgroups returns the machine's tree and an unused name in it.
func needRealCgroups(t *testing.T) (*host.Tree, cgroups.Name) {
	t.Helper()
	lab.NeedHere(t, "root")
	tree, err := host.New(host.Config{Driver: driver()})
	require.NoError(t, err)
	base := cgroups.Name{fmt.Sprintf("kubeparts-test-%d", os.Getpid())}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 90*time.Second)
		defer cancel()
		assert.NoError(t, tree.Remove(ctx, base))
	})
	return tree, base
}

func TestIntegrationCgroupsHaveTheirSettings(t *testing.T) {
	tree, base := needRealCgroups(t)
	facts := tree.Facts()
	t.Logf("cgroup v%d, controllers %v, missing %v", facts.Version, facts.Controllers, facts.Missing())
	pod := base.Child("kubepods", "burstable", "pod12-34")
	_, err := tree.Read(pod)
	require.ErrorIs(t, err, fs.ErrNotExist)

	want := cgroups.Resources{
		CPUShares: new(int64(512)), CPUQuota: new(int64(50_000)), CPUPeriod: new(int64(100_000)),
		Memory: new(int64(64<<20 + 1)), Pids: new(int64(100)),
		MemoryMin: new(int64(1 << 20)), MemoryLow: new(int64(2 << 20)), MemoryHigh: new(int64(32 << 20)),
		HugePages: map[int64]int64{2 << 20: 4 << 20}, // where they can be limited
	}
	require.NoError(t, tree.Apply(t.Context(), pod, want))
	has, err := tree.Read(pod)
	require.NoError(t, err)
	assert.Empty(t, cgroups.Drift(has, facts.AsRead(want)), "the library wrote the values of Settings")
	for _, s := range facts.Settings(want) { // past our own reader
		for _, dir := range tree.Dirs(pod) {
			if text, err := os.ReadFile(filepath.Join(dir, s.File)); err == nil && s.File != "memory.max" && s.File != "memory.limit_in_bytes" {
				assert.Equal(t, s.Value, strings.TrimSpace(string(text)), s.File)
			}
		}
	}
	children, err := tree.Children(base.Child("kubepods", "burstable"))
	require.NoError(t, err)
	assert.Equal(t, []cgroups.Name{pod}, children)
	assert.True(t, tree.Exists(pod))

	// A resize: fields that are not set stay.
	require.NoError(t, tree.Apply(t.Context(), pod, cgroups.Resources{Memory: new(int64(128 << 20)), CPUQuota: new(int64(cgroups.Unlimited))}))
	has, err = tree.Read(pod)
	require.NoError(t, err)
	assert.EqualValues(t, 128<<20, *has.Memory)
	assert.EqualValues(t, cgroups.Unlimited, *has.CPUQuota)
	assert.EqualValues(t, 100, *has.Pids)

	// Its processes are killed with it, also those in cgroups below (cm-44).
	_, output := run(t, tree, pod.Child("c1"), "sleep")
	eventually(t, "the process is in the cgroup", func() bool {
		s, err := tree.Stats(pod)
		return err == nil && s.Pids != nil && s.Pids.Current > 0
	})
	require.NoError(t, tree.Remove(t.Context(), pod))
	output()
	_, err = tree.Read(pod)
	assert.ErrorIs(t, err, fs.ErrNotExist)
	assert.False(t, tree.Exists(pod))
	assert.NoError(t, tree.Remove(t.Context(), pod), "gone is gone")
	_, err = tree.Stats(pod)
	assert.ErrorIs(t, err, fs.ErrNotExist)
}

// Next to v1, runtimes create cgroups of v2 for their containers, and remove only
// those: their parents are removed with the pod.
func TestIntegrationCgroupsOfV2AreRemovedNextToV1(t *testing.T) {
	tree, base := needRealCgroups(t)
	const hybrid = "/sys/fs/cgroup/unified"
	if _, err := os.Stat(filepath.Join(hybrid, "cgroup.procs")); err != nil || tree.Facts().Version != 1 {
		t.Skip("no cgroup v2 is mounted next to v1")
	}
	pod := base.Child("kubepods", "pod12-34")
	require.NoError(t, tree.Apply(t.Context(), pod, cgroups.Resources{}))
	dir := filepath.Join(hybrid, pod.Path(cgroups.Cgroupfs))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "c1"), 0o755))
	require.NoError(t, tree.Remove(t.Context(), pod))
	assert.NoDirExists(t, dir)
	require.NoError(t, tree.Remove(t.Context(), base))
	assert.NoDirExists(t, filepath.Join(hybrid, base.Path(cgroups.Cgroupfs)))
}

func TestIntegrationLimitsAreKept(t *testing.T) {
	tree, base := needRealCgroups(t)
	pod := base.Child("kubepods", "podlimits")
	main := pod.Child("main")
	limit := func(r cgroups.Resources) {
		t.Helper()
		require.NoError(t, tree.Apply(t.Context(), pod, r))
	}

	t.Run("memory", func(t *testing.T) {
		limit(cgroups.Resources{Memory: new(int64(48 << 20))})
		cmd, output := run(t, tree, main, "memory=200")
		out := output()
		assert.Equal(t, syscall.SIGKILL, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(), "output: %s", out)
		s, err := tree.Stats(main)
		require.NoError(t, err)
		assert.EqualValues(t, 1, s.Memory.OOMKills)
		s, err = tree.Stats(pod)
		require.NoError(t, err)
		assert.EqualValues(t, 48<<20, s.Memory.Limit)
		limit(cgroups.Resources{Memory: new(int64(cgroups.Unlimited))})
	})
	t.Run("memory in use", func(t *testing.T) {
		_, _ = run(t, tree, main, "memory=20")
		eventually(t, "20 MiB are in use", func() bool {
			s, err := tree.Stats(pod)
			return err == nil && min(s.Memory.Usage, s.Memory.WorkingSet, s.Memory.RSS) > 16<<20
		})
		require.NoError(t, tree.Remove(t.Context(), main))
	})
	t.Run("pids", func(t *testing.T) {
		limit(cgroups.Resources{Pids: new(int64(1))})
		_, output := run(t, tree, main, "fork")
		assert.Regexp(t, "resource temporarily unavailable|newosproc", output())
		limit(cgroups.Resources{Pids: new(int64(cgroups.Unlimited))})
	})
	t.Run("cpu", func(t *testing.T) {
		limit(cgroups.Resources{CPUQuota: new(int64(10_000)), CPUPeriod: new(int64(100_000))})
		_, output := run(t, tree, main, "burn=200")
		var wall int
		_, err := fmt.Sscanf(strings.TrimPrefix(output(), "in\n"), "burnt %d", &wall)
		require.NoError(t, err)
		assert.Greater(t, wall, 800, "200 ms of CPU time at a tenth of a CPU")
		s, err := tree.Stats(pod)
		require.NoError(t, err)
		if wall < 4000 { // a machine that is busier gives it less than its limit
			assert.NotZero(t, s.CPU.Throttled)
		}
		assert.GreaterOrEqual(t, s.CPU.UsageNanos, uint64(150e6))
	})
}

// One of v1's hierarchies lacks the cgroup, or v2's lacks controllers: it does not
// count as existing, and Apply completes it (cm-9).
func TestIntegrationAnIncompleteCgroupIsCompleted(t *testing.T) {
	tree, base := needRealCgroups(t)
	pod := base.Child("pod1")
	require.NoError(t, tree.Apply(t.Context(), pod, cgroups.Resources{}))
	if tree.Facts().Version == 1 {
		for _, dir := range tree.Dirs(pod) {
			if strings.Contains(dir, "/pids/") {
				require.NoError(t, os.Remove(dir))
			}
		}
	} else {
		for controller := range strings.FieldsSeq("cpu cpuset memory pids hugetlb") {
			_ = os.WriteFile(filepath.Join(tree.Dirs(base)[0], "cgroup.subtree_control"), []byte("-"+controller), 0)
		}
	}
	_, err := tree.Read(pod)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoError(t, tree.Apply(t.Context(), pod, cgroups.Resources{Pids: new(int64(7))}))
	has, err := tree.Read(pod)
	require.NoError(t, err)
	assert.EqualValues(t, 7, *has.Pids)
}

func TestIntegrationAProcessOfOursIsNotKilled(t *testing.T) {
	tree, base := needRealCgroups(t)
	require.NoError(t, tree.Apply(t.Context(), base, cgroups.Resources{}))
	dir := tree.Dirs(base)[0]
	before, err := os.ReadFile("/proc/self/cgroup")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0))
	back := strings.TrimSuffix(dir, base.Path(driver()))
	if lab.InsideSystemd() { // whose services are not in the root
		back += strings.TrimPrefix(strings.TrimSpace(string(before)), "0::")
	}
	t.Cleanup(func() {
		_ = os.WriteFile(filepath.Join(back, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
	})
	t.Logf("before: %s", before)
	assert.ErrorContains(t, tree.Remove(t.Context(), base), "this process")
}

// An unprivileged agent creates the pods' cgroups in the subtree delegated to it.
// Controllers that were not delegated are missing, which is reported and not fatal.
func TestIntegrationADelegatedSubtree(t *testing.T) {
	needCgroupfs(t)
	tree, base := needRealCgroups(t)
	if tree.Facts().Version != 2 {
		t.Skip("cgroup v1 subtrees can't be delegated")
	}
	given := base.Child("given")
	require.NoError(t, tree.Apply(t.Context(), given, cgroups.Resources{}))
	dir, above := tree.Dirs(given)[0], tree.Dirs(base)[0]
	require.NoError(t, os.WriteFile(filepath.Join(above, "cgroup.subtree_control"), []byte("-hugetlb"), 0))
	for _, file := range []string{"", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"} {
		require.NoError(t, os.Chown(filepath.Join(dir, file), 1000, 1000))
	}
	in, err := os.Open(dir)
	require.NoError(t, err)
	defer in.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), asChild+"=delegate")
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(in.Fd()), Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "missing [hugetlb]\n")
	assert.Contains(t, string(out), "pod: cpu weight 20, cpu quota 50000, cpu period 100000, memory 67108864")
	assert.Contains(t, string(out), "again: <nil>\n")
}

// delegated runs in the agent process of that test.
func delegated() error {
	root, err := host.Delegate()
	if err != nil {
		return err
	}
	tree, err := host.New(host.Config{Root: root})
	if err != nil {
		return err
	}
	fmt.Println("missing", tree.Facts().Missing())
	pod := cgroups.Name{"kubepods", "pod1"}
	err = tree.Apply(context.Background(), pod, cgroups.Resources{
		CPUShares: new(int64(512)), CPUQuota: new(int64(50_000)), Memory: new(int64(64 << 20)), HugePages: map[int64]int64{2 << 20: 0},
	})
	if err != nil {
		return err
	}
	r, err := tree.Read(pod)
	if err != nil {
		return err
	}
	fmt.Println("pod:", r)
	if err := tree.Remove(context.Background(), pod.Parent()); err != nil {
		return err
	}
	_, err = host.Delegate()
	fmt.Println("again:", err)
	return nil
}
