//go:build unix

package modern

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cli"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// The cgroup drivers.
const (
	cgroupfs = "cgroupfs" // without systemd
	systemd  = "systemd"  // with systemd as the first process
)

// options are the flags.
type options struct {
	drivers   []string
	cpus      int
	memory    int
	numa      int
	swap      int
	hugePages int
	virtual   bool // time
	slowness  float64
	timeout   time.Duration
	agent     string
	cache     string
	results   string
	command   []string // of this program, in the machine
}

// smoke is the command without another one: the pods about resources on a kubelet and on the node, without the one that
// may use a hundredth of a CPU, of which the emulation takes minutes to start a container.
var smoke = []string{"compare", "--focus", "^resources$", "--skip", "^resources-tiny$"}

const usage = `modern runs another command of this program in an emulated machine with cgroup v2, containerd 2.4, runc and a
control plane, once with each cgroup driver: systemd with systemd as the first process, cgroupfs without systemd.

  go run ./test modern                                        the pods about resources, kubelet and node
  go run ./test modern --drivers systemd compare --focus 'probes|volumes' --all
  go run ./test modern --drivers cgroupfs --swap 1024 --huge-pages 64 compare
  go run ./test modern --drivers systemd --cpus 8 e2enode --focus 'CPU Manager'
  go run ./test modern --drivers systemd --cpus 1 --numa 1 --virtual-time e2enode --focus Eviction

Files that the command writes to its directory, /out in the machine, are in the directory of --results when it has
ended. compare keeps there what it has observed: 'go run ./test compare --from DIRECTORY/systemd' compares it again.

e2enode writes results.tsv there, which 'go run ./test e2enode --merge FILE' adds to those of earlier runs.

It requires Linux, root, a gigabyte of disk, qemu-system-x86_64, mke2fs and dpkg-deb, and the results of
'bash .ci/run containerd kubernetes' and 'bash hack/kubelet.sh ` + lab.KubernetesVersion + `'. The first run downloads
Debian's packages for the machine, which are kept in the directory modern of the cache of .ci/run.

The exit code is that of the command, the highest of all drivers, and 2 if the machine could not be run.
`

func parseFlags(args []string, stdout io.Writer) (o options, err error) {
	var drivers string
	fs := flag.NewFlagSet("modern", flag.ContinueOnError)
	fs.StringVar(&drivers, "drivers", cgroupfs+","+systemd, "cgroup `drivers`, each of which is a run")
	fs.IntVar(&o.cpus, "cpus", 4, "`number` of processors")
	fs.IntVar(&o.memory, "memory", 4096, "`MiB` of memory")
	fs.IntVar(&o.numa, "numa", 2, "`number` of NUMA nodes, 1 or 2; with one processor the second one has only memory")
	fs.IntVar(&o.swap, "swap", 0, "`MiB` of a swap device; 0: there is none")
	fs.IntVar(&o.hugePages, "huge-pages", 16, "`number` of pages of 2 MiB, on all nodes together")
	fs.BoolVar(&o.virtual, "virtual-time", false, "time in the machine passes as its processor computes, and waits take none, so that time limits are met; for commands that use nothing outside of it but images")
	fs.Float64Var(&o.slowness, "slowness", 10, "`factor` by which time limits in the machine are longer")
	fs.DurationVar(&o.timeout, "timeout", 2*time.Hour, "`time` after which a machine is stopped")
	fs.StringVar(&o.agent, "agent", "", "`file` of the complete node (default: it is built)")
	fs.StringVar(&o.cache, "cache", "", "`directory` of the machine's disks (default: modern in the cache of .ci/run)")
	fs.StringVar(&o.results, "results", filepath.Join(os.TempDir(), "modern"), "`directory` for the files of the command, by driver")
	if err := cli.ParseFlags(fs, args, usage, stdout); err != nil {
		return o, err
	}
	for name := range strings.SplitSeq(drivers, ",") {
		if name != cgroupfs && name != systemd {
			return o, fmt.Errorf("--drivers: unknown driver %q: want cgroupfs or systemd", name)
		}
		o.drivers = append(o.drivers, name)
	}
	switch {
	case o.numa != 1 && o.numa != 2:
		return o, errors.New("--numa must be 1 or 2")
	case o.cpus < 1 || o.cpus > 1 && o.cpus%o.numa != 0:
		return o, errors.New("--cpus must be a multiple of --numa")
	case o.virtual && o.cpus != 1:
		return o, errors.New("--virtual-time requires --cpus 1")
	case o.memory < 1024:
		return o, errors.New("--memory must be at least 1024: containerd, a control plane and a node run in it")
	case o.slowness < 1:
		return o, errors.New("--slowness must be at least 1")
	}
	if o.command = fs.Args(); len(o.command) == 0 {
		o.command = smoke
	}
	if o.cache == "" {
		if o.cache, err = labenv.Cached("modern"); err != nil {
			return o, fmt.Errorf("find the cache (see --cache): %w", err)
		}
	}
	return o, nil
}
