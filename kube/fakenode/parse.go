package fakenode

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
)

// syntax lists the options of a Behavior, for errors.
const syntax = "run, ready=2s, never-ready, flap=1s, exit=1@5s, oom@5s, crashes=3, start=2s, stop=2s, stubborn, no-image, no-image=5s, fail=Reason, evict@5s"

// ParseBehavior parses the text of a Behavior: options separated by commas, in any order,
// each at most once. Durations are those of [time.ParseDuration]. An empty text means "run".
//
//	run                     no effect: the container runs until it is stopped
//	ready=2s                ready 2 s after its start; never-ready: never
//	flap=1s                 alternately ready and not ready for 1 s
//	exit=1@5s               exits with code 1 after 5 s; exit=1: immediately
//	oom@5s                  killed with reason OOMKilled after 5 s
//	crashes=3               only the first three instances exit
//	start=2s, stop=2s       each start, and each stop, takes 2 s
//	stubborn                ignores SIGTERM
//	no-image, no-image=5s   its image cannot be pulled: always, or for 5 s
//	fail=CreateContainerError  it cannot be started, for this reason
//	evict@5s                the pod is evicted 5 s after its start
func ParseBehavior(text string) (Behavior, error) {
	var b Behavior
	if strings.TrimSpace(text) == "" {
		return b, nil
	}
	given := map[string]bool{}
	for option := range strings.SplitSeq(text, ",") {
		option = strings.TrimSpace(option)
		name := option
		if i := strings.IndexAny(option, "=@"); i >= 0 {
			name = option[:i]
		}
		err := b.set(name, strings.TrimPrefix(option[len(name):], "="))
		if err == nil && given[name] {
			err = errors.New("duplicate option")
		}
		if err != nil {
			return Behavior{}, fmt.Errorf("fakenode: behavior %q: %q: %w", text, option, err)
		}
		given[name] = true
	}
	switch {
	case given["exit"] && given["oom"]:
		return Behavior{}, fmt.Errorf("fakenode: behavior %q: exit and oom exclude each other", text)
	case b.Exit != nil && b.Exit.Crashes > 0 && !given["exit"] && !given["oom"]:
		return Behavior{}, fmt.Errorf("fakenode: behavior %q: crashes requires exit or oom", text)
	case b.NeverReady && (b.Flap > 0 || given["ready"]):
		return Behavior{}, fmt.Errorf("fakenode: behavior %q: never-ready excludes ready and flap", text)
	}
	if err := b.check(); err != nil {
		return Behavior{}, fmt.Errorf("fakenode: behavior %q: %w", text, err)
	}
	return b, nil
}

// check returns an error if no container can behave in this way.
func (b Behavior) check() error {
	if b.Exit != nil {
		return checkExitCode(b.Exit.Code)
	}
	return nil
}

func checkExitCode(code int32) error {
	if code < 0 || code > 255 {
		return fmt.Errorf("exit code %d: want 0 to 255", code)
	}
	return nil
}

// set sets the option name to value: the text after "=", or "@" and the text after it.
func (b *Behavior) set(name, value string) (err error) {
	code, after, at := strings.Cut(value, "@")
	switch name {
	case "run", "never-ready", "stubborn":
		if value != "" {
			return errors.New("want no value")
		}
		b.NeverReady = b.NeverReady || name == "never-ready"
		b.IgnoreTERM = b.IgnoreTERM || name == "stubborn"
	case "ready":
		b.ReadyAfter, err = duration(value)
	case "flap":
		if b.Flap, err = duration(value); err == nil && b.Flap < time.Millisecond {
			err = errors.New("want at least 1ms")
		}
	case "start":
		b.StartDelay, err = duration(value)
	case "stop":
		b.StopDelay, err = duration(value)
	case "exit":
		var n int64
		if n, err = strconv.ParseInt(code, 10, 32); err != nil {
			return errors.New("want an exit code, and optionally a time: exit=1@5s")
		}
		e := b.exit()
		e.Code = int32(n)
		e.After, err = optional(after, at)
	case "oom":
		e := b.exit()
		e.OOM, e.Code = true, 137
		e.After, err = afterOnly(code, after, at)
	case "evict":
		b.Evict = true
		b.EvictAfter, err = afterOnly(code, after, at)
	case "crashes":
		e := b.exit()
		if e.Crashes, err = strconv.Atoi(value); err != nil || e.Crashes < 1 {
			err = errors.New("want a number of 1 or more")
		}
	case "no-image":
		b.NoImage = true
		b.NoImageFor, err = optional(value, value != "")
	case "fail":
		if b.Fail = value; value == "" || strings.ContainsAny(value, " @=") {
			err = errors.New("want a reason: fail=CreateContainerError")
		}
	default:
		err = fmt.Errorf("unknown option; want %s", syntax)
	}
	return err
}

// exit returns b.Exit, which it allocates if it is nil.
func (b *Behavior) exit() *Exit {
	if b.Exit == nil {
		b.Exit = new(Exit)
	}
	return b.Exit
}

// afterOnly parses "@5s" or an empty text.
func afterOnly(before, after string, at bool) (time.Duration, error) {
	if before != "" {
		return 0, errors.New("want only a time: @5s")
	}
	return optional(after, at)
}

func optional(text string, given bool) (time.Duration, error) {
	if !given {
		return 0, nil
	}
	return duration(text)
}

func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration, such as 2s or 1m30s", text)
	}
	if d < 0 {
		return 0, fmt.Errorf("%v is negative", d)
	}
	return d, nil
}

// behavior returns the behavior of a container: that of the annotation of the container or
// of the pod, of Config.Behave, of its name, or of its image, in this order. It returns an
// error that names an annotation that cannot be parsed.
func (cfg *Config) behavior(pod *v1.Pod, c *v1.Container) (Behavior, error) {
	for _, key := range []string{AnnotationPrefix + c.Name, Annotation} {
		text, ok := pod.Annotations[key]
		if !ok {
			continue
		}
		b, err := ParseBehavior(text)
		if err != nil {
			return b, fmt.Errorf("annotation %s: %w", key, err)
		}
		return b, nil
	}
	if cfg.Behave != nil {
		if b, ok := cfg.Behave(pod, c); ok {
			if err := b.check(); err != nil {
				return b, fmt.Errorf("Config.Behave: %w", err)
			}
			return b, nil
		}
	}
	if b, ok := cfg.Behaviors[c.Name]; ok {
		return b, nil
	}
	return cfg.Behaviors[c.Image], nil
}
