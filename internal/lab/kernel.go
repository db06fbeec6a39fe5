package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// insideKernel is set in the emulated machine.
const insideKernel = "KUBEPARTS_INSIDE_KERNEL"

// InsideKernel reports whether this test runs in the machine of [Kernel].
func InsideKernel() bool { return os.Getenv(insideKernel) != "" }

// NeedHere is [Need] for a test that uses no daemon: it runs where the integration tests
// do, and in the emulated machine.
func NeedHere(t testing.TB, names ...string) {
	t.Helper()
	if !InsideKernel() {
		Need(t, names...)
	}
}

// boot is the machine's first process. It runs each suite, and prints its result on a
// separate line.
const boot = `#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up
export ` + insideKernel + `=1 PATH=/bin HOME=/tmp TMPDIR=/tmp
cd /tmp
for suite in /suites/*; do
	$suite -test.v -test.timeout 5m -test.run Integration </dev/null
	echo "kubeparts-suite ${suite##*/} exit $?"
done
poweroff -f
`

// Kernel boots an emulated machine that has cgroup v2 with all controllers, and
// runs there, as root, the tests of the packages with Integration in their names. Each is
// a subtest of t with its output. The machine is removed at the end.
//
// The kernel is the file that KUBEPARTS_KERNEL names, or the one that .ci/run keeps
// in its cache.
func Kernel(t *testing.T, packages ...string) {
	t.Helper()
	if InsideKernel() {
		t.Skip("lab: one machine in another is enough")
	}
	Need(t, "qemu", "kernel", "busybox")
	var a Archive
	for _, dir := range []string{"bin", "proc", "sys", "dev", "tmp", "suites"} {
		a.Add(dir, CpioDir, nil)
	}
	path, err := busybox()
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, from string) {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		a.Add(name, CpioFile, content)
	}
	put("bin/busybox", path)
	a.Add("init", CpioFile, []byte(boot))
	dir := t.TempDir()
	for pkg, suite := range buildSuites(t, dir, packages) {
		put("suites/"+suiteName(pkg), suite)
	}
	initrd := filepath.Join(dir, "initrd")
	if err := os.WriteFile(initrd, a.End(), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	printed, err := emulate(ctx, initrd, "")
	if err != nil {
		t.Fatalf("lab: the emulated machine: %v\n%s", err, printed)
	}
	report(t, printed, "", packages)
}

// buildSuites builds the tests of packages, and returns the binary of each.
func buildSuites(t *testing.T, dir string, packages []string) map[string]string {
	t.Helper()
	suites := map[string]string{}
	for _, pkg := range packages {
		suite := filepath.Join(dir, suiteName(pkg))
		build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", suite, pkg)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("lab: build the tests of %s: %v\n%s", pkg, err, out)
		}
		suites[pkg] = suite
	}
	return suites
}

// report runs a subtest for each suite. If one failed, it logs the console.
func report(t *testing.T, printed, console string, packages []string) {
	t.Helper()
	for _, pkg := range packages {
		t.Run(suiteName(pkg), func(t *testing.T) {
			out, err := suiteOutput(printed, suiteName(pkg))
			t.Log(out)
			if err != nil {
				t.Errorf("%v\n%s", err, console)
			}
		})
	}
}

// emulate boots the machine and returns its console output.
func emulate(ctx context.Context, initrd, parameters string, options ...string) (printed string, err error) {
	kernel, err := kernelImage()
	if err != nil {
		return "", err
	}
	// tcg, because machines in a cloud seldom have nested virtualization. The kernel does not test its
	// timer, which an emulator on a busy machine lets tick too late: "IO-APIC + timer doesn't work!"
	vm := exec.CommandContext(ctx, "qemu-system-x86_64", append([]string{"-accel", "tcg", "-cpu", "max", "-m", "1024", "-smp", "2", "-nographic", "-no-reboot",
		"-kernel", kernel, "-initrd", initrd, "-append", strings.TrimSpace("console=ttyS0 quiet panic=-1 psi=1 no_timer_check " + parameters), "-nic", "none"}, options...)...)
	vm.WaitDelay = 10 * time.Second
	out, err := vm.CombinedOutput()
	return strings.ReplaceAll(string(out), "\r", ""), errors.Join(err, ctx.Err())
}

// suiteOutput finds the output of a suite, and whether it passed: with at least one
// test that ran.
func suiteOutput(printed, suite string) (string, error) {
	begin := 0
	for _, end := range regexp.MustCompile(`(?m)^kubeparts-suite (\S+) exit (\d+)$`).FindAllStringSubmatchIndex(printed, -1) {
		out := printed[begin:end[0]]
		begin = end[1]
		if printed[end[2]:end[3]] != suite {
			continue
		}
		switch {
		case printed[end[4]:end[5]] != "0":
			return out, fmt.Errorf("lab: %s failed in the emulated machine", suite)
		case !strings.Contains(out, "--- PASS"):
			return out, fmt.Errorf("lab: %s ran no test in the emulated machine", suite)
		}
		return out, nil
	}
	return printed, fmt.Errorf("lab: %s did not end in the emulated machine", suite)
}

func suiteName(pkg string) string {
	return strings.Trim(strings.NewReplacer("/", "-", ".", "").Replace(pkg), "-")
}

// kernelImage returns the path of the kernel.
func kernelImage() (string, error) {
	if path := os.Getenv("KUBEPARTS_KERNEL"); path != "" {
		_, err := os.Stat(path)
		return path, err
	}
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "kernel", "vmlinuz")
	_, err = os.Stat(path)
	return path, err
}

func kernelThere() error {
	_, err := kernelImage()
	return err
}
