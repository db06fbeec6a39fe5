package fakenode

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// words explains the text of a Behaviour to who got it wrong.
const words = "run, ready=2s, never-ready, flap=1s, exit=1@5s, oom@5s, crashes=3, start=2s, stop=2s, stubborn, no-image, no-image=5s, fail=Reason, evict@5s"

// ParseBehaviour reads the text of a Behaviour: words with commas between them,
// in any order, each at most once. Times are those of [time.ParseDuration].
//
//	run                     nothing else: until it is stopped
//	ready=2s                ready 2 s after its start; never-ready: never
//	flap=1s                 ready for 1 s, not ready for 1 s, and so on
//	exit=1@5s               exits with code 1 after 5 s; exit=1: at once
//	oom@5s                  killed for its memory after 5 s
//	crashes=3               the first three instances end so, the others run on
//	start=2s, stop=2s       starting, and stopping, take 2 s
//	stubborn                ignores TERM
//	no-image, no-image=5s   its image cannot be pulled, for good or for 5 s
//	fail=CreateContainerError  it cannot be started, for that reason
//	evict@5s                the pod is evicted 5 s after its start
func ParseBehaviour(text string) (Behaviour, error) {
	var b Behaviour
	seen := map[string]bool{}
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		name := word
		if i := strings.IndexAny(word, "=@"); i >= 0 {
			name = word[:i]
		}
		err := b.read(name, strings.TrimPrefix(word[len(name):], "="))
		if err == nil && seen[name] {
			err = errors.New("it is said twice")
		}
		if err != nil {
			return Behaviour{}, fmt.Errorf("fakenode: behaviour %q: %q: %w", text, word, err)
		}
		seen[name] = true
	}
	switch {
	case seen["exit"] && seen["oom"]:
		return Behaviour{}, fmt.Errorf("fakenode: behaviour %q: exit and oom exclude each other", text)
	case b.Crashes > 0 && !b.Exits:
		return Behaviour{}, fmt.Errorf("fakenode: behaviour %q: crashes needs exit or oom", text)
	case b.NeverReady && (b.Flap > 0 || seen["ready"]):
		return Behaviour{}, fmt.Errorf("fakenode: behaviour %q: never-ready excludes ready and flap", text)
	}
	return b, nil
}

// read takes one word: its name and what follows "=", or "@" and what follows.
func (b *Behaviour) read(name, rest string) (err error) {
	code, after, at := strings.Cut(rest, "@")
	switch name {
	case "run", "never-ready", "stubborn":
		if rest != "" {
			return errors.New("it stands alone")
		}
		b.NeverReady = b.NeverReady || name == "never-ready"
		b.Stubborn = b.Stubborn || name == "stubborn"
	case "ready":
		b.ReadyAfter, err = duration(rest)
	case "flap":
		if b.Flap, err = duration(rest); err == nil && b.Flap < time.Millisecond {
			err = errors.New("a millisecond is the least")
		}
	case "start":
		b.StartDelay, err = duration(rest)
	case "stop":
		b.StopDelay, err = duration(rest)
	case "exit":
		b.Exits = true
		var n int64
		if n, err = strconv.ParseInt(code, 10, 32); err != nil {
			return errors.New("an exit has a code, and may have a time: exit=1@5s")
		}
		b.Code = int32(n)
		b.ExitAfter, err = optional(after, at)
	case "oom":
		b.Exits, b.OOM, b.Code = true, true, 137
		b.ExitAfter, err = afterOnly(code, after, at)
	case "evict":
		b.Evict = true
		b.EvictAfter, err = afterOnly(code, after, at)
	case "crashes":
		if b.Crashes, err = strconv.Atoi(rest); err != nil || b.Crashes < 1 {
			err = errors.New("it is a number from 1 on")
		}
	case "no-image":
		b.NoImage = true
		b.NoImageFor, err = optional(rest, rest != "")
	case "fail":
		if b.Fail = rest; rest == "" || strings.ContainsAny(rest, " @=") {
			err = errors.New("it has a reason, in one word: fail=CreateContainerError")
		}
	default:
		err = fmt.Errorf("there is no such word; there are %s", words)
	}
	return err
}

// afterOnly reads "@5s", or nothing.
func afterOnly(before, after string, at bool) (time.Duration, error) {
	if before != "" {
		return 0, errors.New("it has a time only: @5s")
	}
	return optional(after, at)
}

func optional(text string, there bool) (time.Duration, error) {
	if !there {
		return 0, nil
	}
	return duration(text)
}

func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no time such as 2s or 1m30s", text)
	}
	if d < 0 {
		return 0, fmt.Errorf("%v is negative", d)
	}
	return d, nil
}

// behaviour returns how a container of a pod is declared to behave: by annotation
// of the container or of the pod, by Config.Behave, by its name, by its image. An
// annotation that cannot be read is an error that names it.
func (cfg *Config) behaviour(pod *v1.Pod, c *v1.Container) (Behaviour, error) {
	for _, key := range []string{AnnotationPrefix + c.Name, Annotation} {
		text, ok := pod.Annotations[key]
		if !ok || strings.TrimSpace(text) == "" {
			continue
		}
		b, err := ParseBehaviour(text)
		if err != nil {
			return b, fmt.Errorf("annotation %s: %w", key, err)
		}
		return b, nil
	}
	if cfg.Behave != nil {
		if b, ok := cfg.Behave(pod, c); ok {
			return b, nil
		}
	}
	if b, ok := cfg.Behaviours[c.Name]; ok {
		return b, nil
	}
	return cfg.Behaviours[c.Image], nil
}
