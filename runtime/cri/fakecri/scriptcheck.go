package fakecri

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// Limits far above the values of any node, whose sums do not overflow.
const (
	maxTime  = 10 * 365 * 24 * time.Hour
	maxCores = 1e4
	maxBytes = 1 << 50
)

// check returns the errors in a behavior, with their places.
func (b Behavior) check(at string) error {
	err := errors.Join(
		checkTime(under(at, "startDelay"), b.StartDelay),
		checkTime(under(at, "runFor"), b.RunFor),
		checkTime(under(at, "stopDelay"), b.StopDelay),
		checkCode(under(at, "exitCode"), b.ExitCode),
		checkCode(under(at, "stopCode"), b.StopCode),
		b.Memory.check(under(at, "memory"), maxBytes),
		b.CPU.check(under(at, "cpu"), maxCores),
		b.Disk.check(under(at, "disk"), maxBytes),
	)
	if b.Signal < 0 || b.Signal > 64 {
		err = errors.Join(err, fmt.Errorf("%s: %d is no signal (1 to 64)", under(at, "signal"), b.Signal))
	}
	if b.Crashes < 0 {
		err = errors.Join(err, negative(under(at, "crashes"), b.Crashes))
	}
	if b.RunFor == 0 && b.Crashes == 0 && (b.ExitCode != 0 || b.Signal != 0 || b.OOM) {
		err = errors.Join(err, fmt.Errorf("%s: required by exitCode, signal and oom unless crashes is set", under(at, "runFor")))
	}
	for i, l := range b.Logs {
		err = errors.Join(err, l.check(fmt.Sprintf("%s[%d]", under(at, "logs"), i), i == len(b.Logs)-1))
	}
	ports := map[int32]bool{}
	for i, e := range b.Endpoints {
		at := fmt.Sprintf("%s[%d]", under(at, "endpoints"), i)
		err = errors.Join(err, e.check(at))
		if ports[e.Port] {
			err = errors.Join(err, fmt.Errorf("%s: duplicate value %d", under(at, "port"), e.Port))
		}
		ports[e.Port] = true
	}
	for i, x := range b.ExecRules {
		at := fmt.Sprintf("%s[%d]", under(at, "execRules"), i)
		err = errors.Join(err, checkTime(under(at, "takes"), x.Takes), checkCode(under(at, "exitCode"), x.ExitCode))
		if x.Fails < 0 {
			err = errors.Join(err, negative(under(at, "fails"), x.Fails))
		}
	}
	return err
}

func (l LogLine) check(at string, last bool) error {
	err := errors.Join(checkTime(under(at, "after"), l.After), checkTime(under(at, "every"), l.Every))
	if l.Every > 0 && l.Every < time.Millisecond {
		err = errors.Join(err, fmt.Errorf("%s: %v is less than 1ms", under(at, "every"), l.Every))
	}
	if l.Times < 0 {
		err = errors.Join(err, negative(under(at, "times"), l.Times))
	}
	if l.Times > 1 && l.Every == 0 {
		err = errors.Join(err, fmt.Errorf("%s: requires every", under(at, "times")))
	}
	if !last && l.endless() {
		err = errors.Join(err, fmt.Errorf("%s: has every and no times, so the lines after it are never printed", at))
	}
	if strings.ContainsRune(l.Text, '\n') {
		err = errors.Join(err, fmt.Errorf("%s: has a newline", under(at, "text")))
	}
	return err
}

func (e Endpoint) check(at string) error {
	err := errors.Join(checkTime(under(at, "readyAfter"), e.ReadyAfter), checkTime(under(at, "unreadyAfter"), e.UnreadyAfter))
	if e.Port < 0 || e.Port > math.MaxUint16 {
		err = errors.Join(err, fmt.Errorf("%s: %d is no port", under(at, "port"), e.Port))
	}
	if e.UnreadyAfter != 0 && e.UnreadyAfter <= e.ReadyAfter {
		err = errors.Join(err, fmt.Errorf("%s: %v is not after readyAfter", under(at, "unreadyAfter"), e.UnreadyAfter))
	}
	return err
}

func (c Curve) check(at string, most float64) error {
	var err error
	for i, p := range c.Points {
		at := fmt.Sprintf("%s.points[%d]", at, i)
		err = errors.Join(err, checkTime(under(at, "at"), p.At))
		if i > 0 && p.At < c.Points[i-1].At {
			err = errors.Join(err, fmt.Errorf("%s: %v is before the point before it", under(at, "at"), p.At))
		}
		if !(p.Value >= 0 && p.Value <= most) { // NaN too
			err = errors.Join(err, fmt.Errorf("%s: %v is not from 0 to %v", under(at, "value"), p.Value, most))
		}
	}
	if c.Repeat && c.period() == 0 {
		err = errors.Join(err, fmt.Errorf("%s: needs a point later than 0", under(at, "repeat")))
	}
	return err
}

func (i ImageBehavior) check(at string) error {
	err := checkTime(under(at, "pullTime"), i.PullTime)
	if i.PullFails < 0 {
		err = errors.Join(err, negative(under(at, "pullFails"), i.PullFails))
	}
	if i.Auth != "" && !strings.Contains(i.Auth, ":") {
		err = errors.Join(err, fmt.Errorf("%s: is not user:password", under(at, "auth")))
	}
	names := map[string]bool{}
	for n, l := range i.Layers {
		at := fmt.Sprintf("%s[%d]", under(at, "layers"), n)
		if l.Size == 0 || l.Size > maxBytes {
			err = errors.Join(err, fmt.Errorf("%s: %d is not from 1 to %d", under(at, "size"), l.Size, int64(maxBytes)))
		}
		if l.Name != "" && names[l.Name] {
			err = errors.Join(err, fmt.Errorf("%s: duplicate value %q", under(at, "name"), l.Name))
		}
		names[l.Name] = true
	}
	return err
}

func checkTime(at string, d time.Duration) error {
	switch {
	case d < 0:
		return negative(at, d)
	case d > maxTime:
		return fmt.Errorf("%s: %v is more than ten years", at, d)
	}
	return nil
}

func checkCode(at string, code int32) error {
	if code < 0 || code > 255 {
		return fmt.Errorf("%s: %d is no exit code (0 to 255)", at, code)
	}
	return nil
}

func negative(at string, v any) error { return fmt.Errorf("%s: %v is negative", at, v) }
