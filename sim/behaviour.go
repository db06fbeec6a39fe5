package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A Behaviour is what a simulated container does without being told. The zero
// value starts at once and runs until it is stopped.
//
// Its text, which begins with "run" or how it exits, is the tag of an image, so
// that a pod carries what its containers do: "exit-3-2s", "run_stubborn",
// "run_ready-5s_stop-1s", "exit-137-10s_oom", "exit-1-2s_times-3". Durations are whole milliseconds,
// in the words of [time.Duration] without a point: "1500ms", "2s", "1m30s".
type Behaviour struct {
	Exits     bool // by itself, with Code, ExitAfter its start
	Code      int32
	ExitAfter time.Duration
	OOM       bool // the kernel kills it for its memory, and the runtime says so
	Times     int  // so many instances of the pod's exit so, those after them run; zero: all exit

	Stubborn   bool          // it ignores TERM
	StopDelay  time.Duration // how long it takes to exit after TERM
	StartDelay time.Duration // how long a start takes, as with an image to be pulled
	ReadyAfter time.Duration // readiness probe: fails until this time after the start; zero: none is declared

	// UpAfter and SickAfter are as ReadyAfter: the startup probe fails until then, and
	// the liveness probe from then on. Probed declares a liveness probe that succeeds.
	UpAfter, SickAfter time.Duration
	Probed             bool

	// Version tells apart images that do the same: another one is a change of
	// the container.
	Version int
}

// String returns the text of b.
func (b Behaviour) String() string {
	var w []string
	if b.Exits {
		w = append(w, fmt.Sprintf("exit-%d-%s", b.Code, short(b.ExitAfter)))
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
			w = append(w, d.name+"-"+short(d.of))
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

// Image returns the name of the image whose containers do this.
func (b Behaviour) Image() string { return imageName + ":" + b.String() }

const imageName = "sim.test/does"

// short returns d in whole milliseconds, without a point.
func short(d time.Duration) string {
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

// ParseBehaviour reads the text of a Behaviour, or the name of an image that has
// it for a tag.
func ParseBehaviour(text string) (Behaviour, error) {
	var b Behaviour
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
				b.ExitAfter, err = delay(after)
			}
		case i == 0:
			err = fmt.Errorf(`it begins with neither "run" nor "exit-<code>-<time>"`)
		case word == "oom":
			b.OOM = true
		case head == "times":
			b.Times, err = strconv.Atoi(rest)
			if err == nil && b.Times < 1 {
				err = fmt.Errorf("it exits once or more")
			}
		case word == "stubborn":
			b.Stubborn = true
		case head == "stop":
			b.StopDelay, err = delay(rest)
		case head == "start":
			b.StartDelay, err = delay(rest)
		case head == "ready":
			b.ReadyAfter, err = delay(rest)
		case head == "up":
			b.UpAfter, err = delay(rest)
		case head == "sick":
			b.SickAfter, err = delay(rest)
		case word == "probed":
			b.Probed = true
		case strings.HasPrefix(word, "v"):
			b.Version, err = strconv.Atoi(word[1:])
			if err == nil && b.Version < 1 {
				err = fmt.Errorf("versions begin with 1")
			}
		default:
			err = fmt.Errorf("unknown word")
		}
		if err != nil {
			return Behaviour{}, fmt.Errorf("sim: behaviour %q: %q: %w", text, word, err)
		}
	}
	return b, nil
}

func delay(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil && (d < 0 || d%time.Millisecond != 0) {
		err = fmt.Errorf("%v is not a number of milliseconds", d)
	}
	return d, err
}
