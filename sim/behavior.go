package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Behavior is the behavior of a simulated container. The zero value starts at once
// and runs until it is stopped.
//
// Its text, which begins with "run" or with the exit, is the tag of an image, so that
// the spec of a pod contains the behavior of its containers: "exit-3-2s",
// "run_stubborn", "run_ready-5s_stop-1s", "exit-137-10s_oom", "exit-1-2s_times-3".
// Durations are whole milliseconds, written as [time.Duration] does but without a
// decimal point: "1500ms", "2s", "1m30s".
type Behavior struct {
	Exits     bool // it exits by itself with Code, ExitAfter its start
	Code      int32
	ExitAfter time.Duration
	OOM       bool // the kernel kills it because of its memory; the runtime reports OOMKilled
	Times     int  // only this many instances of the pod exit, later ones run; zero: all exit

	Stubborn   bool          // it ignores TERM
	StopDelay  time.Duration // time from TERM to the exit
	StartDelay time.Duration // time that a start takes, as when an image is pulled
	ReadyAfter time.Duration // the readiness probe fails until this time after the start; zero: the container declares none

	// The startup probe fails until UpAfter, and the liveness probe fails from SickAfter
	// on, both since the start. Zero means that the container does not declare the probe.
	// Probed declares a liveness probe that succeeds.
	UpAfter, SickAfter time.Duration
	Probed             bool

	// Version distinguishes images with equal behavior: another Version is a change of
	// the container.
	Version int
}

// String returns the text of b.
func (b Behavior) String() string {
	var w []string
	if b.Exits {
		w = append(w, fmt.Sprintf("exit-%d-%s", b.Code, formatDelay(b.ExitAfter)))
	} else {
		w = append(w, "run")
	}
	if b.OOM {
		w = append(w, "oom")
	}
	if b.Times > 0 {
		w = append(w, fmt.Sprintf("times-%d", b.Times))
	}
	if b.Stubborn {
		w = append(w, "stubborn")
	}
	for _, d := range []struct {
		name string
		of   time.Duration
	}{{"stop", b.StopDelay}, {"start", b.StartDelay}, {"ready", b.ReadyAfter}, {"up", b.UpAfter}, {"sick", b.SickAfter}} {
		if d.of > 0 {
			w = append(w, d.name+"-"+formatDelay(d.of))
		}
	}
	if b.Probed {
		w = append(w, "probed")
	}
	if b.Version > 0 {
		w = append(w, fmt.Sprintf("v%d", b.Version))
	}
	return strings.Join(w, "_")
}

// Image returns the name of the image with this behavior.
func (b Behavior) Image() string { return imageName + ":" + b.String() }

const imageName = "sim.test/does"

// formatDelay returns d in whole milliseconds, without a decimal point.
func formatDelay(d time.Duration) string {
	d = d.Round(time.Millisecond)
	if d%time.Second != 0 {
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	}
	s := d.String() // "1h0m0s"
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// ParseBehavior parses the text of a Behavior, or the name of an image whose tag is
// one.
func ParseBehavior(text string) (Behavior, error) {
	var b Behavior
	words := strings.Split(strings.TrimPrefix(text, imageName+":"), "_")
	for i, word := range words {
		head, rest, _ := strings.Cut(word, "-")
		var err error
		switch {
		case word == "run" && i == 0:
		case head == "exit" && i == 0:
			code, after, _ := strings.Cut(rest, "-")
			b.Exits = true
			var n int64
			if n, err = strconv.ParseInt(code, 10, 32); err == nil {
				b.Code = int32(n)
				b.ExitAfter, err = parseDelay(after)
			}
		case i == 0:
			err = fmt.Errorf(`must begin with "run" or "exit-<code>-<time>"`)
		case word == "oom":
			b.OOM = true
		case head == "times":
			b.Times, err = strconv.Atoi(rest)
			if err == nil && b.Times < 1 {
				err = fmt.Errorf("must be at least 1")
			}
		case word == "stubborn":
			b.Stubborn = true
		case head == "stop":
			b.StopDelay, err = parseDelay(rest)
		case head == "start":
			b.StartDelay, err = parseDelay(rest)
		case head == "ready":
			b.ReadyAfter, err = parseDelay(rest)
		case head == "up":
			b.UpAfter, err = parseDelay(rest)
		case head == "sick":
			b.SickAfter, err = parseDelay(rest)
		case word == "probed":
			b.Probed = true
		case strings.HasPrefix(word, "v"):
			b.Version, err = strconv.Atoi(word[1:])
			if err == nil && b.Version < 1 {
				err = fmt.Errorf("version must be at least 1")
			}
		default:
			err = fmt.Errorf("unknown word")
		}
		if err != nil {
			return Behavior{}, fmt.Errorf("sim: behavior %q: %q: %w", text, word, err)
		}
	}
	return b, nil
}

func parseDelay(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil && (d < 0 || d%time.Millisecond != 0) {
		err = fmt.Errorf("%v is not a number of milliseconds", d)
	}
	return d, err
}
