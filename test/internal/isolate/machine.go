package isolate

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/cgroupdir"
)

// A Machine is a set of namespaces for mounts, processes, the network and cgroups, in which commands run like those
// of a machine of their own. It has the files of this machine, except for its Directories. It has the address
// 192.0.2.2, as has every other one, and those of its links.
type Machine struct {
	hold    *exec.Cmd // keeps the namespaces
	pid     string    // of a process in them
	cgroups []string
}

// openTimeout bounds the time that a busy machine takes to prepare the namespaces.
const openTimeout = 90 * time.Second

// OpenMachine makes a machine with a host name, and empty directories at paths, which are below dir. Close it also
// with an error.
func OpenMachine(ctx context.Context, name, dir string, paths ...string) (*Machine, error) {
	m := new(Machine)
	var err error
	if m.cgroups, err = makeCgroups(name); err != nil {
		return m, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return m, err
	}
	// A reader of standard input ends with this program.
	m.hold = exec.Command("sh", "-c", inNamespaces(m.cgroups), "sh", "-c", `touch "$READY"; cat`)
	ready := filepath.Join(dir, "entered")
	m.hold.Env = append(os.Environ(), "ENTER="+enter, "READY="+ready)
	var output strings.Builder
	m.hold.Stdout, m.hold.Stderr, m.hold.SysProcAttr = &output, &output, ownGroup()
	if _, err := m.hold.StdinPipe(); err != nil {
		return m, err
	}
	if err := m.hold.Start(); err != nil {
		return m, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	for {
		if _, err := os.Stat(ready); err == nil {
			break
		}
		select {
		case <-ctx.Done():
			return m, fmt.Errorf("make the machine %s: %w: %s", name, context.Cause(ctx), output.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
	// unshare is in the namespaces except for that of processes, which its child is in.
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", m.hold.Process.Pid))
	if m.pid = strings.TrimSpace(string(children)); err != nil || m.pid == "" {
		return m, fmt.Errorf("find a process of the machine %s: %w", name, err)
	}
	script := "set -e\nhostname " + name
	for _, path := range paths {
		calls, err := mountCalls(dir, path)
		if err != nil {
			return m, err
		}
		for _, args := range calls {
			script += "\nmount " + strings.Join(args, " ")
		}
	}
	if out, err := m.Command(ctx, "sh", "-c", script).CombinedOutput(); err != nil {
		return m, fmt.Errorf("prepare the machine %s: %w: %s", name, err, out)
	}
	return m, nil
}

// Command returns a command that runs in the machine.
func (m *Machine) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append([]string{"--target", m.pid, "--mount", "--net", "--pid", "--uts", "--ipc", "--cgroup", "--", name}, args...)...)
}

// Link connects two machines by a pair of links named wire with these addresses, such as "198.51.100.1/24".
func Link(ctx context.Context, a, b *Machine, addressOfA, addressOfB string) error {
	out, err := exec.CommandContext(ctx, "ip", "link", "add", "wire", "netns", a.pid, "type", "veth", "peer", "name", "wire", "netns", b.pid).CombinedOutput()
	if err != nil {
		return fmt.Errorf("link two machines: %w: %s", err, out)
	}
	for _, end := range []struct {
		of      *Machine
		address string
	}{{a, addressOfA}, {b, addressOfB}} {
		out, err := end.of.Command(ctx, "sh", "-c", "ip address add "+end.address+" dev wire && ip link set wire up").CombinedOutput()
		if err != nil {
			return fmt.Errorf("set the address %s: %w: %s", end.address, err, out)
		}
	}
	return nil
}

// Close kills all processes of the machine, and removes its cgroups.
func (m *Machine) Close() error {
	if m.hold != nil && m.hold.Process != nil {
		_ = m.hold.Process.Kill() // fails if it has ended; unshare's child is killed with it
		_ = m.hold.Wait()         // it was killed
	}
	return cgroupdir.Remove(m.cgroups)
}
