package oom

import (
	"fmt"
	"strconv"
	"strings"
)

// A Kill is one or more processes that the OOM killer killed.
type Kill struct {
	// Cgroup is the path of the cgroup whose limit was reached; "/" if the machine was
	// out of memory; "" if unknown.
	Cgroup string

	// Victim is the cgroup of the process; "" if unknown.
	Victim string

	// Process and PID are the name and PID of the victim; "" and 0 if the kill comes from
	// a counter.
	Process string
	PID     int

	// Count is the number of processes; 1 if the kill comes from the kernel log.
	Count int
}

// System reports whether the machine, not a cgroup, was out of memory.
func (k Kill) System() bool { return k.Cgroup == "/" }

// String describes the kill.
func (k Kill) String() string {
	if k.Process == "" {
		return fmt.Sprintf("%d processes of %s killed for memory", k.Count, k.Cgroup)
	}
	return fmt.Sprintf("process %s (%d) of %s killed for memory of %s", k.Process, k.PID, k.Victim, k.Cgroup)
}

// A Parser combines the lines of the kernel log that describe a kill. The zero value is
// ready to use.
type Parser struct{ open *Kill }

// Line parses the text of one record of the kernel log and returns the kill that it
// completes.
//
// Kernels since 5.0 write "oom-kill:constraint=…,oom_memcg=…,task_memcg=…,task=…,
// pid=…,uid=…", with global_oom instead of oom_memcg if the machine is out of memory;
// older ones "Task in A killed as a result of limit of B". Then follows "…Killed process
// PID (NAME)…".
func (p *Parser) Line(text string) (Kill, bool) {
	text = strings.TrimRight(text, "\n")
	switch {
	case strings.Contains(text, " invoked oom-killer:"):
		p.open = &Kill{Cgroup: "/", Victim: "/"}
	case strings.HasPrefix(text, "oom-kill:"):
		p.open = summary(strings.TrimPrefix(text, "oom-kill:"))
	case strings.HasPrefix(text, "Task in "):
		victim, cgroup, ok := strings.Cut(strings.TrimPrefix(text, "Task in "), " killed as a result of limit of ")
		if ok && p.open != nil {
			p.open.Victim, p.open.Cgroup = victim, cgroup
		}
	case strings.Contains(text, "Killed process "):
		k := p.open
		p.open = nil
		if k == nil {
			// The first lines were not read; this line contains whether a cgroup was out
			// of memory.
			k = &Kill{Cgroup: "/", Victim: "/"}
			if strings.HasPrefix(text, "Memory cgroup out of memory") {
				k.Cgroup, k.Victim = "", ""
			}
		}
		_, rest, _ := strings.Cut(text, "Killed process ")
		pid, rest, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(strings.TrimSuffix(pid, ","))
		if err != nil || n <= 0 {
			return Kill{}, false
		}
		k.PID, k.Count = n, 1
		if name := between(rest); name != "" {
			k.Process = name
		}
		return *k, true
	}
	return Kill{}, false
}

// between returns the name in "(name) total-vm:…". It may contain parentheses and spaces.
func between(text string) string {
	text, ok := strings.CutPrefix(strings.TrimSpace(text), "(")
	if !ok {
		return ""
	}
	end := strings.Index(text, ") total-vm")
	if end < 0 {
		end = strings.Index(text, "),")
	}
	if end < 0 {
		end = strings.LastIndex(text, ")")
	}
	if end < 0 {
		return ""
	}
	return text[:end]
}

// summary parses the line of fields. A path may contain commas: a field ends where the
// next known one begins.
func summary(text string) *Kill {
	k := &Kill{Cgroup: "/", Victim: "/"}
	if cgroup, ok := field(text, "oom_memcg=", ",task_memcg="); ok {
		k.Cgroup = cgroup
	}
	if victim, ok := field(text, "task_memcg=", ",task="); ok {
		k.Victim = victim
	}
	if process, ok := field(text, ",task=", ",pid="); ok {
		k.Process = process
	}
	if pid, ok := field(text, ",pid=", ",uid="); ok {
		k.PID, _ = strconv.Atoi(pid)
	}
	return k
}

func field(text, from, to string) (string, bool) {
	_, rest, ok := strings.Cut(text, from)
	if !ok {
		return "", false
	}
	value, _, ok := strings.Cut(rest, to)
	return value, ok
}

// parseRecord returns the number and text of a record of /dev/kmsg, "6,1234,5678,-;text";
// further lines are ignored. ok is false if the record is invalid.
func parseRecord(record []byte) (number uint64, text string, ok bool) {
	head, rest, ok := strings.Cut(string(record), ";")
	fields := strings.Split(head, ",")
	if !ok || len(fields) < 3 {
		return 0, "", false
	}
	number, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return 0, "", false
	}
	text, _, _ = strings.Cut(rest, "\n")
	return number, text, true
}
