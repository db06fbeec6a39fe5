package cluster

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"time"
)

// A column is one column of a CSV file.
type column[T any] struct {
	name  string
	value func(*T) string
}

// seconds formats a time as seconds with milliseconds; never is empty.
func seconds(d time.Duration) string {
	if d == never {
		return ""
	}
	return fmt.Sprintf("%d.%03d", d/time.Second, d%time.Second/time.Millisecond)
}

func number[N int | int32 | int64](n N) string { return strconv.FormatInt(int64(n), 10) }

var podColumns = []column[PodResult]{
	{"pod", func(p *PodResult) string { return p.Name }},
	{"priority", func(p *PodResult) string { return number(p.Priority) }},
	{"node", func(p *PodResult) string { return p.Node }},
	{"created_s", func(p *PodResult) string { return seconds(p.Created) }},
	{"scheduled_s", func(p *PodResult) string { return seconds(p.Scheduled) }},
	{"started_s", func(p *PodResult) string { return seconds(p.Started) }},
	{"finished_s", func(p *PodResult) string { return seconds(p.Finished) }},
	{"phase", func(p *PodResult) string { return string(p.Phase) }},
	{"reason", func(p *PodResult) string { return p.Reason }},
	{"signal", func(p *PodResult) string { return p.Signal }},
	{"restarts", func(p *PodResult) string { return number(p.Restarts) }},
	{"oom_kills", func(p *PodResult) string { return number(p.OOMKills) }},
	{"ran_s", func(p *PodResult) string { return seconds(p.Ran) }},
	{"lost_s", func(p *PodResult) string { return seconds(p.Lost) }},
	{"peak_memory_bytes", func(p *PodResult) string { return number(p.PeakMemory) }},
}

var nodeColumns = []column[NodeResult]{
	{"node", func(n *NodeResult) string { return n.Name }},
	{"pods", func(n *NodeResult) string { return number(n.Pods) }},
	{"evictions", func(n *NodeResult) string { return number(n.Evictions) }},
	{"oom_kills", func(n *NodeResult) string { return number(n.OOMKills) }},
	{"pulls", func(n *NodeResult) string { return number(n.Pulls) }},
	{"pulled_bytes", func(n *NodeResult) string { return number(n.PulledBytes) }},
	{"images_removed", func(n *NodeResult) string { return number(n.ImagesRemoved) }},
	{"peak_memory_bytes", func(n *NodeResult) string { return number(n.PeakMemory) }},
	{"peak_disk_bytes", func(n *NodeResult) string { return number(n.PeakDisk) }},
	{"pressure_s", func(n *NodeResult) string { return seconds(n.Pressure) }},
}

var sampleColumns = []column[Sample]{
	{"time_s", func(s *Sample) string { return seconds(s.At) }},
	{"pending", func(s *Sample) string { return number(s.Pending) }},
	{"starting", func(s *Sample) string { return number(s.Starting) }},
	{"running", func(s *Sample) string { return number(s.Running) }},
	{"restarting", func(s *Sample) string { return number(s.Restarting) }},
	{"stopping", func(s *Sample) string { return number(s.Stopping) }},
	{"succeeded", func(s *Sample) string { return number(s.Succeeded) }},
	{"failed", func(s *Sample) string { return number(s.Failed) }},
	{"evictions", func(s *Sample) string { return number(s.Evictions) }},
	{"oom_kills", func(s *Sample) string { return number(s.OOMKills) }},
	{"restarts", func(s *Sample) string { return number(s.Restarts) }},
	{"pulls", func(s *Sample) string { return number(s.Pulls) }},
	{"images_removed", func(s *Sample) string { return number(s.ImagesRemoved) }},
	{"pressured_nodes", func(s *Sample) string { return number(s.PressuredNodes) }},
	{"requested_cpu_milli", func(s *Sample) string { return number(s.Requested.CPU) }},
	{"requested_memory_bytes", func(s *Sample) string { return number(s.Requested.Memory) }},
	{"requested_disk_bytes", func(s *Sample) string { return number(s.Requested.Disk) }},
	{"used_memory_bytes", func(s *Sample) string { return number(s.Used.Memory) }},
	{"used_disk_bytes", func(s *Sample) string { return number(s.Used.Disk) }},
	{"capacity_cpu_milli", func(s *Sample) string { return number(s.Capacity.CPU) }},
	{"capacity_memory_bytes", func(s *Sample) string { return number(s.Capacity.Memory) }},
	{"capacity_disk_bytes", func(s *Sample) string { return number(s.Capacity.Disk) }},
}

// WritePods writes a CSV file with a header and a row for each pod. Times are in seconds
// since the start of the simulation, and empty if they are -1 in [PodResult].
func (r *Report) WritePods(w io.Writer) error {
	return writeCSV(w, podColumns, func(yield func(*PodResult)) {
		for _, p := range r.Pods {
			yield(p)
		}
	})
}

// WriteNodes writes a CSV file with a header and a row for each node.
func (r *Report) WriteNodes(w io.Writer) error {
	return writeCSV(w, nodeColumns, func(yield func(*NodeResult)) {
		for _, n := range r.Nodes {
			yield(n)
		}
	})
}

// WriteSamples writes a CSV file with a header and a row for each sample.
func (r *Report) WriteSamples(w io.Writer) error {
	return writeCSV(w, sampleColumns, func(yield func(*Sample)) {
		for i := range r.Samples {
			yield(&r.Samples[i])
		}
	})
}

func writeCSV[T any](w io.Writer, columns []column[T], rows func(yield func(*T))) error {
	out := csv.NewWriter(w)
	record := make([]string, len(columns))
	write := func(field func(column[T]) string) {
		for i, c := range columns {
			record[i] = field(c)
		}
		_ = out.Write(record) // Flush reports the error
	}
	write(func(c column[T]) string { return c.name })
	rows(func(row *T) { write(func(c column[T]) string { return c.value(row) }) })
	out.Flush()
	return out.Error()
}
