package topology

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/internal/podspec"
)

const (
	cpuDir  = "sys/devices/system/cpu"
	nodeDir = "sys/devices/system/node"
)

// Read reads the topology from sysfs below root, os.DirFS("/"). Only the list of online
// CPUs is required. Missing information is replaced: one NUMA node with the memory of
// /proc/meminfo, one socket, one thread per core. An error names the file that cannot be
// parsed.
func Read(root fs.FS) (*Machine, error) {
	r := reader{root}
	online, err := r.list(cpuDir + "/online")
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	offline, err := r.list(cpuDir + "/present")
	if errors.Is(err, fs.ErrNotExist) {
		offline, err = online, nil
	}
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	nodes, nodeOf, err := r.nodes()
	if err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	var cpus []CPU
	for _, id := range online.List() {
		c, err := r.cpu(id, online)
		if err != nil {
			return nil, fmt.Errorf("topology: %w", err)
		}
		if nodeOf != nil {
			node, ok := nodeOf[id]
			if !ok {
				return nil, fmt.Errorf("topology: CPU %d is online but not in a NUMA node", id)
			}
			c.Node = node
		}
		cpus = append(cpus, c)
	}
	shareSocketCache(cpus)
	return NewMachine(cpus, nodes, offline.Difference(online))
}

type reader struct{ root fs.FS }

// cpu reads the CPU except for its node. Uncore is -1 if unknown.
func (r reader) cpu(id int, online cpuset.CPUSet) (CPU, error) {
	c := CPU{ID: id, Core: id, Uncore: -1}
	dir := fmt.Sprintf("%s/cpu%d", cpuDir, id)
	socket, err := r.number(dir+"/topology/physical_package_id", 0)
	if err != nil {
		return c, err
	}
	c.Socket = max(socket, 0) // -1 on ARM without firmware information
	siblings, err := r.list(dir + "/topology/thread_siblings_list")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	c.Core = lowest(siblings.Intersection(online), id)
	for i := range 10 {
		cache := fmt.Sprintf("%s/cache/index%d", dir, i)
		level, err := r.number(cache+"/level", 0)
		if err != nil {
			return c, err
		}
		if level == 0 {
			break
		}
		if level != 3 {
			continue
		}
		shared, err := r.list(cache + "/shared_cpu_list")
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return c, err
		}
		c.Uncore = lowest(shared.Intersection(online), id)
	}
	return c, nil
}

// shareSocketCache assigns CPUs with an unknown last level cache to that of their socket.
func shareSocketCache(cpus []CPU) {
	first := map[int]int{}
	for i := range cpus {
		if _, ok := first[cpus[i].Socket]; !ok {
			first[cpus[i].Socket] = cpus[i].ID
		}
		if cpus[i].Uncore < 0 {
			cpus[i].Uncore = first[cpus[i].Socket]
		}
	}
}

// nodes reads the NUMA nodes and the node of each CPU; a nil map if the kernel has no
// NUMA support.
func (r reader) nodes() ([]Node, map[int]int, error) {
	ids, err := r.list(nodeDir + "/online")
	if errors.Is(err, fs.ErrNotExist) {
		memory, err := r.memory("proc/meminfo")
		if err != nil {
			return nil, nil, err
		}
		pages, err := podspec.ReadHugePages(r.root, podspec.HugePagesDir)
		return []Node{{MemoryBytes: memory, HugePages: pages}}, nil, err
	}
	if err != nil {
		return nil, nil, err
	}
	var nodes []Node
	nodeOf := map[int]int{}
	for _, id := range ids.List() {
		dir := fmt.Sprintf("%s/node%d", nodeDir, id)
		n := Node{ID: id}
		cpus, err := r.list(dir + "/cpulist")
		if err != nil {
			return nil, nil, err
		}
		for _, c := range cpus.List() {
			nodeOf[c] = id
		}
		if n.MemoryBytes, err = r.memory(dir + "/meminfo"); err != nil {
			return nil, nil, err
		}
		if n.HugePages, err = podspec.ReadHugePages(r.root, dir+"/hugepages"); err != nil {
			return nil, nil, err
		}
		if n.Distances, err = r.numbers(dir + "/distance"); err != nil {
			return nil, nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nodeOf, nil
}

// memory reads MemTotal in bytes; 0 if the file does not exist.
func (r reader) memory(name string) (uint64, error) {
	text, err := r.text(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return 0, nil
		}
		return 0, err
	}
	for line := range strings.Lines(text) {
		_, amount, ok := strings.Cut(line, "MemTotal:")
		if !ok {
			continue
		}
		kb, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(amount), "kB")), 10, 53)
		if err != nil {
			return 0, fmt.Errorf("%s: MemTotal: %w", name, err)
		}
		return kb << 10, nil
	}
	return 0, fmt.Errorf("%s has no MemTotal", name)
}

func (r reader) text(name string) (string, error) {
	data, err := fs.ReadFile(r.root, name)
	return strings.TrimSpace(string(data)), err
}

func (r reader) list(name string) (cpuset.CPUSet, error) {
	text, err := r.text(name)
	if err != nil {
		return cpuset.New(), err
	}
	set, err := ParseCPUs(text)
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return set, err
}

// number reads a number; otherwise if the file does not exist.
func (r reader) number(name string, otherwise int) (int, error) {
	text, err := r.text(name)
	if errors.Is(err, fs.ErrNotExist) {
		return otherwise, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

func (r reader) numbers(name string) ([]int, error) {
	text, err := r.text(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		return nil, err
	}
	var all []int
	for field := range strings.FieldsSeq(text) {
		n, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, n)
	}
	return all, nil
}

// lowest returns the lowest CPU of the set, or otherwise if it is empty.
func lowest(set cpuset.CPUSet, otherwise int) int {
	for _, id := range set.List() {
		return id
	}
	return otherwise
}
