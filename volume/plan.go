package volume

import "time"

// A state is the actual state of a volume, or of a staged device, on this node.
type state int

const (
	notMounted state = iota // nothing of it exists
	uncertain               // parts of it may exist: SetUp failed or was canceled, or an earlier agent set it up
	inPlace                 // containers can use it
)

func (s state) String() string {
	return [...]string{"not mounted", "uncertain", "mounted"}[s]
}

// A step is an operation on a volume. Its text is shown to operators.
type step string

const (
	noStep   step = ""
	setUp    step = "set up"
	refresh  step = "refresh"
	expand   step = "expand"
	tearDown step = "tear down"
	forget   step = "forget" // remove it from memory: it is neither desired nor mounted
	stage    step = "stage"
	unstage  step = "unstage"
	late     step = "time out of attach"
)

// A stepInput is the state that determines the next step of a pod's volume.
type stepInput struct {
	desired bool
	state   state
	busy    bool // a step is in progress

	refresh   bool      // its content may be outdated
	refreshAt time.Time // when it is refreshed next; zero: no such time
	grow      bool      // its file system is smaller than the persistent volume

	notBefore time.Time // end of the back-off after a failed step

	attach   bool // it must be attached before it is mounted
	attached bool
	attachBy time.Time

	device *deviceInput // nil: it is not staged
}

// A deviceInput is the state that determines the next step of a staged device.
type deviceInput struct {
	state     state
	busy      bool
	notBefore time.Time
	users     int // volumes of pods that desire it or may still have it mounted

	// mislabeled: it may be staged with another SELinux label than the volume
	// needs, and no volume of a pod may have it mounted.
	mislabeled bool
}

// next returns the step to take with a pod's volume now, and otherwise the time of the next
// evaluation if nothing changes before; zero means none.
func next(v stepInput, now time.Time) (step, time.Time) {
	switch {
	case v.busy:
		return noStep, time.Time{}
	case !v.desired && v.state == notMounted:
		return forget, time.Time{}
	case !v.desired:
		return stepAt(v.notBefore, now, tearDown)
	case v.state == inPlace:
		return nextInPlace(v, now)
	case v.attach && !v.attached:
		return stepAt(v.attachBy, now, late)
	case v.notBefore.After(now):
		return noStep, v.notBefore
	case v.device != nil && v.device.busy:
		return noStep, time.Time{}
	case v.device != nil && v.device.mislabeled:
		return stepAt(v.device.notBefore, now, unstage)
	case v.device != nil && v.device.state != inPlace:
		return stepAt(v.device.notBefore, now, stage) // once for all pods (rule vol-20)
	}
	return setUp, time.Time{}
}

// nextInPlace returns the next step of a mounted volume.
func nextInPlace(v stepInput, now time.Time) (step, time.Time) {
	due := v.refresh || !v.refreshAt.IsZero() && !v.refreshAt.After(now)
	switch {
	case due:
		return stepAt(v.notBefore, now, refresh)
	case v.grow:
		return stepAt(v.notBefore, now, expand)
	}
	return noStep, v.refreshAt
}

// nextDevice returns the next step of a device independently of volumes: it is unstaged after
// the last volume that uses it is torn down.
func nextDevice(d deviceInput, now time.Time) (step, time.Time) {
	switch {
	case d.busy || d.users > 0:
		return noStep, time.Time{}
	case d.state == notMounted:
		return forget, time.Time{}
	}
	return stepAt(d.notBefore, now, unstage)
}

// stepAt returns the step if its time has come, and otherwise that time.
func stepAt(notBefore, now time.Time, s step) (step, time.Time) {
	if notBefore.After(now) {
		return noStep, notBefore
	}
	return s, time.Time{}
}

// The back-off of a failing step is doubled with each failure, as in the kubelet.
const (
	initialBackoff = 500 * time.Millisecond
	maxBackoff     = 2*time.Minute + 2*time.Second
)

// minRefreshPeriod bounds how often a plugin can request a refresh: a token may already be
// expired by the clock of this node.
const minRefreshPeriod = 5 * time.Second

// notBefore returns m with a RefreshAt, if there is one, of at least at.
func (m SetUpResult) notBefore(at time.Time) SetUpResult {
	if !m.RefreshAt.IsZero() && m.RefreshAt.Before(at) {
		m.RefreshAt = at
	}
	return m
}

// A failure is a failed step and the time of its retry.
type failure struct {
	step      step
	err       error
	delay     time.Duration
	notBefore time.Time
}

// after returns the failure that follows f. A failure of another kind of step starts with the
// initial back-off.
func (f failure) after(s step, err error, now time.Time) failure {
	delay := initialBackoff
	if f.err != nil && f.step == s {
		delay = min(2*f.delay, maxBackoff)
	}
	return failure{step: s, err: err, delay: delay, notBefore: now.Add(delay)}
}
