package machine

import (
	"archive/tar"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/internal/dirlock"
	"github.com/kubeparts/kubeparts/internal/lab"
)

// Host returns the address in the machine of the machine that it runs on: programs reach there what listens on
// 127.0.0.1.
func Host() net.IP { return net.IPv4(10, 0, 2, 2) }

// Config is a machine and what it runs.
type Config struct {
	// Systemd makes systemd the first process, with the system bus and logind. Otherwise a script starts the job, and
	// nothing else changes cgroups.
	Systemd bool

	CPUs      int // two threads of a core each, if there are enough
	MemoryMiB int
	NUMANodes int // with the same number of CPUs and the same memory; 1 or 2. The second one of one CPU has only memory
	SwapMiB   int // size of the swap device; 0: there is none
	HugePages int // of 2 MiB, on all nodes together

	// VirtualTime makes the time in the machine pass with the instructions that are executed, a nanosecond each, and while
	// all programs sleep, at once until the next one wakes up. There can be one CPU: qemu lets others run only when a time
	// slice has passed, which takes minutes where one waits for another.
	VirtualTime bool

	// Cache is the directory of the files that are kept, Dir one for temporary files.
	Cache, Dir string

	// Programs is the directory that is /programs in the machine, Job the directory that is /job. Both are read-only.
	// The shell script run in Job is run, as root, in the directory /out.
	Programs, Job string

	// Out receives the job's output, and Say is called with lines about the progress.
	Out io.Writer
	Say func(format string, args ...any)
}

// Run boots the machine, runs the job, writes the files of /out to a directory, and returns the job's exit code. It
// returns an error with the last lines of the console if the machine stops before the job has ended.
func Run(ctx context.Context, c Config, results string) (code int, err error) {
	if os.Geteuid() != 0 {
		return 0, errors.New("the machine's files belong to root: run this as root")
	}
	r, programs, err := openCached(ctx, c)
	if err != nil {
		return 0, err
	}
	d := disks{root: r.disk(), programs: programs, job: filepath.Join(c.Dir, "job.img"), out: filepath.Join(c.Dir, "out.img")}
	if err := makeDiskOf(ctx, c.Job, d.job); err != nil {
		return 0, err
	}
	if err := sparse(d.out, 1<<30); err != nil {
		return 0, err
	}
	if c.SwapMiB > 0 {
		d.swap = filepath.Join(c.Dir, "swap.img")
		if err := sparse(d.swap, int64(c.SwapMiB)<<20); err != nil {
			return 0, err
		}
	}
	console := filepath.Join(c.Dir, "console.log")
	began := time.Now()
	c.Say("booting the machine: %s", c)
	code, err = emulate(ctx, c, r, d, console)
	if err != nil {
		log, _ := os.ReadFile(console)
		return 0, fmt.Errorf("the emulated machine: %w\nits console:\n%s", err, lastLines(string(log), 30))
	}
	c.Say("the machine has stopped after %v", time.Since(began).Round(time.Second))
	f, err := os.Open(d.out)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return code, unpack(f, results)
}

// openCached returns the files of the machine in c.Cache. What is not there is made by one process at a time.
func openCached(ctx context.Context, c Config) (r root, programs string, err error) {
	if err := os.MkdirAll(c.Cache, 0o755); err != nil {
		return r, "", err
	}
	lock, err := dirlock.Take(filepath.Join(c.Cache, "lock"))
	for errors.Is(err, dirlock.ErrHeld) && ctx.Err() == nil {
		lock, err = dirlock.Take(filepath.Join(c.Cache, "lock"))
	}
	if err != nil {
		return r, "", fmt.Errorf("lock the cache %s: %w", c.Cache, err)
	}
	r, err = openRoot(ctx, c.Cache, c.Say)
	if err == nil {
		programs, err = openPrograms(ctx, c)
	}
	return r, programs, errors.Join(err, lock.Release())
}

func (c Config) String() string {
	init := "no systemd"
	if c.Systemd {
		init = "systemd"
	}
	clock := "the time of this machine"
	if c.VirtualTime {
		clock = "a time of its own"
	}
	return fmt.Sprintf("%s, %d CPUs and %d MiB in %d NUMA nodes, %d MiB of swap, %d huge pages, %s", init, c.CPUs, c.MemoryMiB, max(1, c.NUMANodes), c.SwapMiB, c.HugePages, clock)
}

// emulate runs qemu and returns the exit code of the job, which is in the last line of its output.
func emulate(ctx context.Context, c Config, r root, d disks, console string) (int, error) {
	vm := exec.CommandContext(ctx, "qemu-system-x86_64", arguments(c, r, d, console)...)
	vm.Env = append(os.Environ(), "TMPDIR="+c.Dir) // of what the machine writes to its disk
	vm.WaitDelay = 10 * time.Second
	var output strings.Builder
	vm.Stderr = &output
	line, err := vm.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := vm.Start(); err != nil {
		return 0, err
	}
	code, found := copyOutput(c.Out, line)
	err = errors.Join(vm.Wait(), ctx.Err())
	switch {
	case err != nil:
		return 0, fmt.Errorf("%w: %s", err, output.String())
	case !found:
		return 0, errors.New("it stopped before the job had ended")
	}
	return code, nil
}

// copyOutput copies lines to out until the end of in, and returns the job's exit code, and whether there was one.
func copyOutput(out io.Writer, in io.Reader) (code int, found bool) {
	reader := bufio.NewReader(in)
	for {
		line, err := reader.ReadString('\n')
		line = strings.TrimRight(line, "\r\n")
		if text, ok := strings.CutPrefix(line, exitLine); ok {
			if n, err := strconv.Atoi(text); err == nil {
				code, found = n, true
				continue
			}
		}
		if line != "" {
			fmt.Fprintln(out, line)
		}
		if err != nil {
			return code, found
		}
	}
}

// disks are files. swap may be empty.
type disks struct {
	root, programs, job, out, swap string
}

// arguments returns those of qemu.
func arguments(c Config, r root, d disks, console string) []string {
	parameters := "console=ttyS0 quiet panic=-1 psi=1 no_timer_check mitigations=off net.ifnames=0"
	if c.HugePages > 0 {
		parameters += " hugepagesz=2M hugepages=" + strconv.Itoa(c.HugePages)
	}
	if c.Systemd {
		parameters += " " + lab.SystemdParameters + " realinit=" + systemdInit
	} else {
		parameters += " realinit=" + plainInit
	}
	// tcg, because machines in a cloud seldom have nested virtualization.
	clock := []string{"-accel", "tcg,thread=multi"}
	if c.VirtualTime {
		clock = []string{"-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-rtc", "clock=vm"}
	}
	args := append(clock,
		"-cpu", "max", "-smp", c.processors(), "-m", strconv.Itoa(c.MemoryMiB),
		"-display", "none", "-monitor", "none", "-no-reboot", "-serial", "file:"+console, "-serial", "stdio",
		"-kernel", r.kernel(), "-initrd", r.initrd(), "-append", parameters,
		"-nic", "user,model=virtio-net-pci",
	)
	if c.NUMANodes > 1 {
		cpus := max(1, c.CPUs/c.NUMANodes)
		for i := range c.NUMANodes {
			node := fmt.Sprintf("node,nodeid=%d,memdev=node%d", i, i)
			if i*cpus < c.CPUs {
				node += fmt.Sprintf(",cpus=%d-%d", i*cpus, (i+1)*cpus-1)
			}
			args = append(args, "-object", fmt.Sprintf("memory-backend-ram,id=node%d,size=%dM", i, c.MemoryMiB/c.NUMANodes), "-numa", node)
		}
	}
	drive := func(file, options string) {
		args = append(args, "-drive", "file="+file+",format=raw,if=virtio"+options)
	}
	drive(d.root, ",snapshot=on,cache=unsafe")
	drive(d.programs, ",readonly=on")
	drive(d.job, ",readonly=on")
	drive(d.out, ",cache=unsafe")
	if d.swap != "" {
		drive(d.swap, ",cache=unsafe")
	}
	return args
}

// processors returns the option of the processors: those of a NUMA node are a socket, and a core has two threads if
// that is possible.
func (c Config) processors() string {
	sockets, threads := max(1, min(c.NUMANodes, c.CPUs)), 1
	if c.CPUs%(2*sockets) == 0 {
		threads = 2
	}
	return fmt.Sprintf("%d,sockets=%d,cores=%d,threads=%d", c.CPUs, sockets, c.CPUs/sockets/threads, threads)
}

// unpack writes the files of a tar to a directory, without others than directories and regular files.
func unpack(in io.Reader, dir string) error {
	for archive := tar.NewReader(in); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read the results: %w", err)
		}
		if !filepath.IsLocal(h.Name) {
			return fmt.Errorf("read the results: unexpected file %q", h.Name)
		}
		name := filepath.Join(dir, h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(name, 0o755)
		case tar.TypeReg:
			err = writeFile(name, archive)
		}
		if err != nil {
			return err
		}
	}
}

func writeFile(name string, from io.Reader) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}

// sparse makes a file of a size that takes no space.
func sparse(file string, size int64) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
