package oom

import (
	"fmt"
	"strconv"
	"strings"
)

// A Kill is one or more processes that the kernel ended for memory.
type Kill struct {
	// Cgroup whose limit was reached, as the kernel names it; "/" if the machine
	// itself was out of memory (oom-2).
	Cgroup string

	// Victim is the cgroup that the process was in; "" if that is not known.
	Victim string

	// Process and PID are of the victim; "" and 0 if only a counter tells.
	Process string
	PID     int

	// Count of processes, 1 if the kernel's log told.
	Count int
}

// System reports whether the machine was out of memory, not one cgroup.
func (k Kill) System() bool { return k.Cgroup == "/" }

// String says it in words.
func (k Kill) String() string {
	if k.Process == "" {
		return fmt.Sprintf("%d processes of %s killed for memory", k.Count, k.Cgroup)
	}
	return fmt.Sprintf("process %s (%d) of %s killed for memory of %s", k.Process, k.PID, k.Victim, k.Cgroup)
}

// A Parser puts together what the kernel says of a kill in several lines. The zero
// value is ready.
type Parser struct{ open *Kill }

// Line takes the text of one record of the kernel's log, and returns the kill that
// it completes.
//
// Kernels since 5.0 write "oom-kill:constraint=…,oom_memcg=…,task_memcg=…,task=…,
// pid=…,uid=…", where global_oom stands for oom_memcg when the machine is out of
// memory; older ones "Task in A killed as a result of limit of B". Then comes
// "…Killed process PID (NAME)…".
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
			// The end of what was not seen from the start: the line itself tells
			// whose memory it was.
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

// between returns what is in the brackets of "(name) total-vm:…". A name may have
// brackets, and spaces.
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

// summary reads the line of fields. A path may have commas in it: a field ends
// where the next known one begins.
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

// parseRecord takes the text out of a record of /dev/kmsg, "6,1234,5678,-;text", with
// its number; lines after the first are fields that nobody needs. A record that is
// none is not ok.
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
