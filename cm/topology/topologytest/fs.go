package topologytest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/cpuset"

	"github.com/kubeparts/kubeparts/cm/topology"
)

// FS returns the files that topology.Read reads, for a description.
func FS(description string) (fstest.MapFS, error) {
	b := builder{files: fstest.MapFS{}, core: map[int]cpuset.CPUSet{}, socket: map[int]int{}, l3: map[int]cpuset.CPUSet{}}
	number := 0
	for line := range strings.Lines(description) {
		number++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if err := b.line(words[0], words[1:]); err != nil {
			return nil, fmt.Errorf("topologytest: line %d: %w", number, err)
		}
	}
	b.finish()
	return b.files, nil
}

type builder struct {
	files     fstest.MapFS
	cpus, off cpuset.CPUSet
	core, l3  map[int]cpuset.CPUSet
	socket    map[int]int
	nodes     []int
	memory    string
}

func (b *builder) put(name, text string) { b.files[name] = &fstest.MapFile{Data: []byte(text + "\n")} }

func (b *builder) line(verb string, args []string) (err error) {
	if len(args) == 0 {
		return fmt.Errorf("%s has no arguments", verb)
	}
	switch verb {
	case "cpus":
		b.cpus, err = topology.ParseCPUs(args[0])
	case "offline":
		b.off, err = topology.ParseCPUs(args[0])
	case "smt":
		err = b.threads(args)
	case "socket":
		err = b.each(args, func(socket, cpu int) { b.socket[cpu] = socket })
	case "l3":
		set, parseErr := topology.ParseCPUs(args[0])
		for _, cpu := range set.List() {
			b.l3[cpu] = set
		}
		err = parseErr
	case "node":
		err = b.node(args)
	case "distance":
		b.put("sys/devices/system/node/node"+args[0]+"/distance", strings.Join(args[1:], " "))
	case "memory":
		b.memory = args[0]
	default:
		err = fmt.Errorf("unknown keyword %q", verb)
	}
	return err
}

func (b *builder) threads(args []string) error {
	firsts := b.cpus
	if len(args) > 1 {
		var err error
		if firsts, err = topology.ParseCPUs(args[1]); err != nil {
			return err
		}
	}
	if args[0] == "pairs" {
		for _, cpu := range firsts.List() {
			if cpu%2 == 0 {
				b.core[cpu] = cpuset.New(cpu, cpu+1)
				b.core[cpu+1] = b.core[cpu]
			}
		}
		return nil
	}
	offset, err := strconv.Atoi(args[0])
	for _, cpu := range firsts.List() {
		if _, done := b.core[cpu]; !done && b.cpus.Contains(cpu+offset) {
			b.core[cpu] = cpuset.New(cpu, cpu+offset)
			b.core[cpu+offset] = b.core[cpu]
		}
	}
	return err
}

// each calls do for each CPU of a list that follows a number.
func (b *builder) each(args []string, do func(number, cpu int)) error {
	number, err := strconv.Atoi(args[0])
	if err != nil || len(args) < 2 {
		return fmt.Errorf("%q is not a number and a CPU list", args)
	}
	set, err := topology.ParseCPUs(strings.TrimPrefix(args[1], "-"))
	for _, cpu := range set.List() {
		do(number, cpu)
	}
	return err
}

func (b *builder) node(args []string) error {
	var cpus []int
	if err := b.each(args, func(_, cpu int) { cpus = append(cpus, cpu) }); err != nil {
		return err
	}
	id, _ := strconv.Atoi(args[0])
	b.nodes = append(b.nodes, id)
	dir := fmt.Sprintf("sys/devices/system/node/node%d", id)
	b.put(dir+"/cpulist", cpuset.New(cpus...).Difference(b.off).String())
	for _, word := range args[2:] {
		size, count, pages := strings.Cut(word, "=")
		amount, err := resource.ParseQuantity(size)
		switch {
		case err != nil:
			return err
		case pages:
			b.put(fmt.Sprintf("%s/hugepages/hugepages-%dkB/nr_hugepages", dir, amount.Value()>>10), count)
		default:
			b.put(dir+"/meminfo", fmt.Sprintf("Node %d MemTotal:       %d kB", id, amount.Value()>>10))
		}
	}
	return nil
}

func (b *builder) finish() {
	const dir = "sys/devices/system/cpu"
	b.put(dir+"/present", b.cpus.String())
	b.put(dir+"/online", b.cpus.Difference(b.off).String())
	for _, id := range b.cpus.Difference(b.off).List() {
		cpu := fmt.Sprintf("%s/cpu%d", dir, id)
		core, ok := b.core[id]
		if !ok {
			core = cpuset.New(id)
		}
		b.put(cpu+"/topology/thread_siblings_list", core.Difference(b.off).String())
		if socket, ok := b.socket[id]; ok {
			b.put(cpu+"/topology/physical_package_id", strconv.Itoa(socket))
		}
		b.put(cpu+"/cache/index0/level", "1")
		b.put(cpu+"/cache/index0/shared_cpu_list", core.Difference(b.off).String())
		if l3, ok := b.l3[id]; ok {
			b.put(cpu+"/cache/index1/level", "3")
			b.put(cpu+"/cache/index1/shared_cpu_list", l3.Difference(b.off).String())
		}
	}
	if len(b.nodes) > 0 {
		slices.Sort(b.nodes)
		b.put("sys/devices/system/node/online", cpuset.New(b.nodes...).String())
	} else if amount, err := resource.ParseQuantity(b.memory); err == nil {
		b.put("proc/meminfo", fmt.Sprintf("MemTotal:       %d kB\nMemFree: 1 kB", amount.Value()>>10))
	}
}
