package claim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/kubeparts/kubeparts/internal/untrusted"
	"github.com/kubeparts/kubeparts/internal/yamljson"
)

// checkKubelets returns an error if another kubelet of this machine uses one of the
// resources; this process may be named kubelet as well. A
// kubelet in another mount namespace, as in the nodes of kind, has other files. If proc
// cannot be read, no kubelet is found.
func checkKubelets(mine resources, proc string) error {
	here, err := os.Readlink(filepath.Join(proc, "self", "ns", "mnt"))
	if err != nil {
		return nil
	}
	self, _ := os.Readlink(filepath.Join(proc, "self"))
	names, _ := filepath.Glob(filepath.Join(proc, "[0-9]*", "comm"))
	for _, comm := range names {
		dir := filepath.Dir(comm)
		if filepath.Base(dir) == self {
			continue
		}
		name, err := untrusted.ReadFile(comm, maxProcFile)
		if err != nil || strings.TrimSpace(string(name)) != "kubelet" {
			continue
		}
		if there, err := os.Readlink(filepath.Join(dir, "ns", "mnt")); err != nil || there != here {
			continue
		}
		if !startedByAdmin(dir) {
			continue
		}
		line, err := untrusted.ReadFile(filepath.Join(dir, "cmdline"), maxCommandLine)
		if err != nil || len(line) == 0 {
			continue // the process has ended
		}
		theirs := kubeletResources(strings.Split(strings.TrimRight(string(line), "\x00"), "\x00"))
		var shared []string
		for _, kind := range slices.Sorted(maps.Keys(mine)) {
			if theirs[kind] == mine[kind] {
				shared = append(shared, kind+" "+mine[kind])
			}
		}
		if len(shared) > 0 {
			return fmt.Errorf("%s %w by the kubelet with process ID %s, whose pods would be removed as orphans: stop it (systemctl stop kubelet), or configure other paths",
				strings.Join(shared, ", "), ErrInUse, filepath.Base(dir))
		}
	}
	return nil
}

const (
	maxProcFile    = 64 << 10 // bytes of a small file in /proc
	maxCommandLine = 1 << 20  // bytes of a kubelet's command line
	maxConfig      = 4 << 20  // bytes of a KubeletConfiguration
)

// startedByAdmin reports whether root or the agent's user started a process, given its
// directory in /proc. Any user can name a program kubelet and choose its command line. A
// set-user-ID program runs as root with the command line of any user.
func startedByAdmin(dir string) bool {
	status, err := untrusted.ReadFile(filepath.Join(dir, "status"), maxProcFile)
	if err != nil {
		return false
	}
	if program, err := os.Stat(filepath.Join(dir, "exe")); err == nil && program.Mode()&os.ModeSetuid != 0 {
		return false
	}
	uids := uidsIn(string(status))
	return len(uids) > 0 && !slices.ContainsFunc(uids, func(uid int) bool { return uid != 0 && uid != os.Geteuid() })
}

// uidsIn returns the user IDs in the status of a process: real, effective, saved, and that
// of the file system.
func uidsIn(status string) []int {
	for line := range strings.Lines(status) {
		rest, ok := strings.CutPrefix(line, "Uid:")
		if !ok {
			continue
		}
		var uids []int
		for field := range strings.FieldsSeq(rest) {
			uid, err := strconv.Atoi(field)
			if err != nil {
				return nil
			}
			uids = append(uids, uid)
		}
		return uids
	}
	return nil
}

// A kubeletConfig has the fields of a KubeletConfiguration that name resources.
type kubeletConfig struct {
	ContainerRuntimeEndpoint string `json:"containerRuntimeEndpoint"`
	PodLogsDir               string `json:"podLogsDir"`
	CgroupRoot               string `json:"cgroupRoot"`
	CgroupsPerQOS            *bool  `json:"cgroupsPerQOS"`
}

// readConfig reads a KubeletConfiguration in YAML or JSON. Fields that cannot be read are
// zero.
func readConfig(path string) (c kubeletConfig) {
	f, err := untrusted.OpenFollow(path)
	if err != nil {
		return c
	}
	defer f.Close()
	text, err := untrusted.Read(f, maxConfig)
	if err != nil {
		return c
	}
	object, err := yamljson.Convert(string(text))
	if err != nil {
		return c
	}
	_ = json.Unmarshal(object, &c) // decodes the other fields if one has the wrong type
	return c
}

// kubeletResources returns the resources of a kubelet by its command line, and the file of
// its --config.
func kubeletResources(args []string) resources {
	flags := map[string]string{}
	for i, arg := range args {
		name, value, ok := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !ok && i+1 < len(args) {
			value = args[i+1]
		}
		if strings.HasPrefix(arg, "-") {
			flags[name] = value
		}
	}
	var k kubeletConfig
	if file := flags["config"]; file != "" {
		k = readConfig(file)
	}
	r := resources{
		runtimeSocket: socketOf(cmp.Or(flags["container-runtime-endpoint"], k.ContainerRuntimeEndpoint, "unix:///run/containerd/containerd.sock")),
		rootDirectory: resolved(cmp.Or(flags["root-dir"], "/var/lib/kubelet")),
		podLogs:       resolved(cmp.Or(flags["pod-logs-dir"], k.PodLogsDir, "/var/log/pods")),
	}
	perQOS := k.CgroupsPerQOS == nil || *k.CgroupsPerQOS
	if set, err := strconv.ParseBool(flags["cgroups-per-qos"]); err == nil {
		perQOS = set
	}
	if perQOS {
		r[cgroupRoot] = filepath.Join("/", cmp.Or(flags["cgroup-root"], k.CgroupRoot))
	}
	return r
}
