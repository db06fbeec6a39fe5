package lab

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// insideSystemd is set in the machine of [Systemd].
const insideSystemd = "KUBEPARTS_INSIDE_SYSTEMD"

// InsideSystemd reports whether this test runs in the machine of [Systemd].
func InsideSystemd() bool { return os.Getenv(insideSystemd) != "" }

// NeedSystemd skips a test unless it runs in the machine of [Systemd].
func NeedSystemd(t testing.TB) {
	t.Helper()
	if !InsideSystemd() {
		t.Skip("lab: this test runs in the emulated machine of lab.Systemd")
	}
}

// Systemd is [Kernel] on a machine whose first process is this machine's systemd, with
// the system bus and logind. It runs the tests of the packages whose names match the
// pattern as the service job.service.
func Systemd(t *testing.T, pattern string, packages ...string) {
	t.Helper()
	if InsideKernel() {
		t.Skip("lab: one machine in another is enough")
	}
	Need(t, "qemu", "kernel", "busybox", "systemd")
	dir := t.TempDir()
	files, err := systemdFiles()
	if err != nil {
		t.Fatal(err)
	}
	path, err := busybox()
	if err != nil {
		t.Fatal(err)
	}
	files["usr/bin/busybox"] = path
	for pkg, suite := range buildSuites(t, dir, packages) {
		files["suites/"+suiteName(pkg)] = suite
	}
	var a Archive
	made := map[string]bool{}
	for _, name := range []string{"proc", "sys", "dev", "tmp", "run", "var", "usr/sbin", "usr/lib64"} {
		a.dirs(made, name)
	}
	for link, to := range map[string]string{"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64", "init": "usr/lib/systemd/systemd", "var/run": "../run"} {
		a.Add(link, CpioLink, []byte(to))
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content, err := os.ReadFile(files[name])
		if err != nil {
			t.Fatal(err)
		}
		a.dirs(made, filepath.Dir(name))
		a.Add(name, CpioFile, content)
	}
	config := SystemdConfig("/bin/busybox sh /suites.sh")
	config["suites.sh"] = suitesScript(pattern)
	for name, text := range config {
		a.dirs(made, filepath.Dir(name))
		a.Add(name, CpioText, []byte(text))
	}
	initrd := filepath.Join(dir, "initrd")
	if err := os.WriteFile(initrd, a.End(), 0o600); err != nil {
		t.Fatal(err)
	}
	// The suites write to a separate serial line, without messages of the kernel and systemd.
	line := filepath.Join(dir, "suites.txt")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	console, err := emulate(ctx, initrd, SystemdParameters,
		"-serial", "mon:stdio", "-serial", "file:"+line)
	printed, readErr := os.ReadFile(line)
	if err := errors.Join(err, readErr); err != nil {
		t.Fatalf("lab: the emulated machine: %v\n%s\n%s", err, console, printed)
	}
	report(t, strings.ReplaceAll(string(printed), "\r", ""), console, packages)
}

// SystemdParameters are the kernel's parameters of a machine with systemd.
const SystemdParameters = "systemd.log_target=console systemd.log_level=notice systemd.log_color=0 systemd.show_status=0 systemd.default_standard_output=kmsg+console systemd.default_timeout_start_sec=300"

// SystemdConfig returns the configuration files of a machine with systemd that runs a command as the service
// job.service, with its output on the second serial line. The machine has the system bus and logind, and no other
// services.
func SystemdConfig(command string) map[string]string {
	unit := func(lines ...string) string { return strings.Join(lines, "\n") + "\n" }
	const alone = "DefaultDependencies=no"
	return map[string]string{
		"etc/passwd":     "root:x:0:0:root:/:/bin/sh\nmessagebus:x:100:100::/:/bin/false\n",
		"etc/group":      "root:x:0:\nmessagebus:x:100:\n",
		"etc/machine-id": "0123456789abcdef0123456789abcdef\n",
		"etc/os-release": "ID=kubeparts-lab\nNAME=lab\n",
		"etc/dbus-1/system.conf": `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><user>messagebus</user><listen>unix:path=/run/dbus/system_bus_socket</listen><auth>EXTERNAL</auth>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/><allow user="*"/></policy></busconfig>
`,
		"etc/systemd/system/default.target":  unit("[Unit]", alone, "Requires=job.service"),
		"etc/systemd/system/sysinit.target":  unit("[Unit]", alone, "Conflicts=shutdown.target"),
		"etc/systemd/system/basic.target":    unit("[Unit]", "Requires=sysinit.target", "After=sysinit.target"),
		"etc/systemd/system/shutdown.target": unit("[Unit]", alone, "RefuseManualStart=yes"),
		"etc/systemd/system/poweroff.target": unit("[Unit]", alone, "AllowIsolate=yes", "After=job.service"),
		"etc/systemd/system/dbus.socket":     unit("[Socket]", "ListenStream=/run/dbus/system_bus_socket"),
		"etc/systemd/system/dbus.service": unit("[Unit]", "Requires=dbus.socket", "[Service]", "Type=notify",
			"ExecStart=/usr/bin/dbus-daemon --config-file=/etc/dbus-1/system.conf --address=systemd: --nofork --nopidfile --systemd-activation"),
		"etc/systemd/system/systemd-logind.service": unit("[Unit]", "Requires=dbus.socket", "After=dbus.socket", "[Service]", "Type=dbus", "BusName=org.freedesktop.login1",
			"ExecStart=/usr/lib/systemd/systemd-logind", "Restart=always", "RestartSec=0",
			"RuntimeDirectory=systemd/sessions systemd/seats systemd/users systemd/inhibit systemd/shutdown", "RuntimeDirectoryPreserve=yes"),
		// A shutdown waits for the service and stops no unit before, so that the results are
		// printed. At its end the service stops the machine.
		"etc/systemd/system/job.service": unit("[Unit]", alone, "Wants=systemd-logind.service", "Wants=basic.target", "After=basic.target systemd-logind.service",
			"[Service]", "Type=oneshot", "ExecStart="+command, "StandardInput=null", "StandardOutput=tty", "StandardError=tty", "TTYPath=/dev/ttyS1",
			"TimeoutStartSec=infinity", "Delegate=no"),
	}
}

// suitesScript runs the suites in the machine of [Systemd], and stops it.
func suitesScript(pattern string) string {
	return `/bin/busybox --install /usr/bin
mount -t tmpfs tmp /tmp
ip link set lo up
export ` + insideKernel + `=1 ` + insideSystemd + `=1 PATH=/bin HOME=/tmp TMPDIR=/tmp
cd /tmp
for suite in /suites/*; do
	$suite -test.v -test.timeout 10m -test.run '` + pattern + `'
	echo "kubeparts-suite ${suite##*/} exit $?"
done
sync
poweroff -f
`
}

// systemdPrograms are the programs of this machine that [Systemd] uses.
var systemdPrograms = []string{"/usr/lib/systemd/systemd", "/usr/lib/systemd/systemd-logind", "/usr/bin/systemctl", "/usr/bin/dbus-daemon"}

func systemdThere() error {
	_, err := systemdFiles()
	return err
}

// systemdFiles returns the programs, and the libraries that they are linked with, by
// their names in an archive.
func systemdFiles() (map[string]string, error) {
	files := map[string]string{}
	programs := slices.Clone(systemdPrograms)
	if executor := "/usr/lib/systemd/systemd-executor"; exists(executor) { // since 255
		programs = append(programs, executor)
	}
	for _, program := range programs {
		if err := linked(files, program); err != nil {
			return nil, err
		}
	}
	return files, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// linked adds a program or library and the libraries that it is linked with.
func linked(files map[string]string, path string) error {
	name := strings.TrimPrefix(path, "/")
	if !strings.HasPrefix(name, "usr/") {
		name = "usr/" + name
	}
	if files[name] != "" {
		return nil
	}
	files[name] = path
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		loader := make([]byte, p.Filesz)
		if _, err := p.ReadAt(loader, 0); err != nil {
			return fmt.Errorf("lab: %s: %w", path, err)
		}
		loader = loader[:len(loader)-1] // the zero byte
		files["usr"+strings.TrimPrefix(string(loader), "/usr")] = string(loader)
	}
	needs, err := f.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("lab: %s: %w", path, err)
	}
	dirs, _ := f.DynString(elf.DT_RUNPATH)
	dirs = append(dirs, "/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib/x86_64-linux-gnu/systemd", "/usr/lib/systemd")
	for _, need := range needs {
		at := slices.IndexFunc(dirs, func(dir string) bool { return exists(filepath.Join(dir, need)) })
		if at < 0 {
			return fmt.Errorf("lab: %s is linked with %s, which is in none of %v", path, need, dirs)
		}
		if err := linked(files, filepath.Join(dirs[at], need)); err != nil {
			return err
		}
	}
	return nil
}
