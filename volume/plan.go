package volume

import "time"

// A State is what is known of a volume on this machine (vol-1).
type State int

// The states of a volume, or of a device that is staged.
const (
	// NotMounted: nothing of it is there.
	NotMounted State = iota

	// Uncertain: something of it may be there. A SetUp failed or was cut
	// short, or an earlier agent has left it.
	Uncertain

	// InPlace: it is ready for containers.
	InPlace
)

func (s State) String() string {
	return [...]string{"not mounted", "uncertain", "mounted"}[s]
}

// A step is one thing to do with a volume.
type step string

const (
	nothing  step = ""
	setUp    step = "set up"
	refresh  step = "refresh"
	expand   step = "expand"
	tearDown step = "tear down"
	forget   step = "forget" // it is gone, and nobody wants it
	stage    step = "stage"
	unstage  step = "unstage"
	late     step = "attached too late"
)

// A look is all that the next step of a pod's volume depends on.
type look struct {
	wanted bool
	state  State
	busy   bool // a step is being taken

	refresh   bool      // it is to be brought up to date
	refreshAt time.Time // and at this time again; zero: not by the clock
	grow      bool      // its file system is smaller than it should be

	notBefore time.Time // the back-off of the step that failed last

	attach   bool // somebody has to attach it first,
	attached bool // who has done so,
	attachBy time.Time

	device *deviceLook // nil: it is not staged
}

// A deviceLook is all that the next step of a staged device depends on.
type deviceLook struct {
	state     State
	busy      bool
	notBefore time.Time
	users     int // volumes of pods that want it, or may still have it mounted

	// mislabeled: it may be staged with another SELinux label than the volume is to
	// be mounted with, and no volume of a pod may have it mounted.
	mislabeled bool
}

// next returns what is to be done with a pod's volume now, and when to ask again
// if nothing happens before; zero: never.
func next(v look, now time.Time) (step, time.Time) {
	switch {
	case v.busy:
		return nothing, time.Time{}
	case !v.wanted && v.state == NotMounted:
		return forget, time.Time{}
	case !v.wanted:
		return unless(v.notBefore, now, tearDown)
	case v.state == InPlace:
		return nextInPlace(v, now)
	case v.attach && !v.attached: // vol-16
		return unless(v.attachBy, now, late)
	case v.notBefore.After(now):
		return nothing, v.notBefore
	case v.device != nil && v.device.busy:
		return nothing, time.Time{}
	case v.device != nil && v.device.mislabeled:
		return unless(v.device.notBefore, now, unstage)
	case v.device != nil && v.device.state != InPlace:
		return unless(v.device.notBefore, now, stage) // once for all pods (vol-20)
	}
	return setUp, time.Time{}
}

// nextInPlace returns what is to be done with a volume that is used.
func nextInPlace(v look, now time.Time) (step, time.Time) {
	due := v.refresh || !v.refreshAt.IsZero() && !v.refreshAt.After(now)
	switch {
	case due:
		return unless(v.notBefore, now, refresh)
	case v.grow:
		return unless(v.notBefore, now, expand)
	}
	return nothing, v.refreshAt
}

// nextDevice returns what is to be done with a device because of nobody in
// particular: it is unstaged when the last pod has let go of it (vol-24).
func nextDevice(d deviceLook, now time.Time) (step, time.Time) {
	switch {
	case d.busy || d.users > 0:
		return nothing, time.Time{}
	case d.state == NotMounted:
		return forget, time.Time{}
	}
	return unless(d.notBefore, now, unstage)
}

// unless returns the step, or, if it must wait, until when.
func unless(notBefore, now time.Time, s step) (step, time.Time) {
	if notBefore.After(now) {
		return nothing, notBefore
	}
	return s, time.Time{}
}

// The back-off of a step that fails: 500 ms, doubled each time, at most 2 m 2 s.
const (
	backoffFirst = 500 * time.Millisecond
	backoffMost  = 2*time.Minute + 2*time.Second
)

// refreshPause is kept between two refreshes that a plugin asks for, however early
// it wants the next: by the clock of this machine what it has may have ended.
const refreshPause = 5 * time.Second

// notBefore returns m, whose RefreshAt, if there is one, is that late at least.
func (m SetUpResult) notBefore(at time.Time) SetUpResult {
	if !m.RefreshAt.IsZero() && m.RefreshAt.Before(at) {
		m.RefreshAt = at
	}
	return m
}

// A failure is a step that has failed, and when it may be tried again.
type failure struct {
	step      step
	err       error
	delay     time.Duration
	notBefore time.Time
}

// after returns the failure that follows f, of the same kind of step or of
// another, which begins anew.
func (f failure) after(s step, err error, now time.Time) failure {
	delay := backoffFirst
	if f.err != nil && f.step == s {
		delay = min(2*f.delay, backoffMost)
	}
	return failure{step: s, err: err, delay: delay, notBefore: now.Add(delay)}
}
