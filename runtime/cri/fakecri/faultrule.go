package fakecri

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	internalapi "k8s.io/cri-api/pkg/apis"
)

// A FaultRule applies a fault to matching calls. The zero value fails every call.
type FaultRule struct {
	// Method, Pod (its UID), Container and Image select calls; empty matches any.
	Method, Pod, Container, Image string

	// After is the number of matching calls without a fault at the beginning. Count, if
	// above zero, is the maximum number of faults. Probability, if above zero, is the
	// probability of a fault, determined by the seed as in [Random].
	After, Count int
	Probability  float64

	// Delay, Lost, Hang and Stale are those of Fault.
	Delay time.Duration
	Lost  bool
	Hang  bool
	Stale time.Duration

	// Error is the message of the error and Code the name of its gRPC code, for example
	// Unavailable. If all fields from Delay on are zero, the error is "fault of a
	// script" with code Unknown.
	Error string
	Code  string
}

// faults returns the fault function of the script, which must be valid.
func (s Script) faults(seed uint64) func(Call) Fault {
	rules := make([]func(Call) Fault, len(s.Faults))
	for i, rule := range s.Faults {
		rules[i] = rule.faults(seed + uint64(i)<<32)
	}
	return First(rules...)
}

func (f FaultRule) faults(seed uint64) func(Call) Fault {
	faults := Always(f.fault())
	if f.Probability > 0 {
		faults = Random(seed, f.Probability, f.fault())
	}
	if f.Count > 0 {
		faults = Times(f.Count, faults)
	}
	if f.After > 0 {
		faults = after(f.After, faults)
	}
	return If(f.about, faults)
}

// after applies faults after n calls.
func after(n int, faults func(Call) Fault) func(Call) Fault {
	var calls atomic.Int64
	return func(c Call) Fault {
		if calls.Add(1) <= int64(n) {
			return Fault{}
		}
		return faults(c)
	}
}

func (f FaultRule) about(c Call) bool {
	fits := func(want, is string) bool { return want == "" || want == is }
	return fits(f.Method, c.Method) && fits(f.Pod, c.Pod) && fits(f.Container, c.Container) &&
		(f.Image == "" || c.Image != "" && sameImage(f.Image, c.Image))
}

// fault returns the fault of the rule.
func (f FaultRule) fault() Fault {
	out := Fault{Delay: f.Delay, Lost: f.Lost, Hang: f.Hang, Stale: f.Stale}
	code, ok := codeNamed(f.Code)
	switch text := f.Error; {
	case text != "" || ok:
		if text == "" {
			text = "fault of a script"
		}
		if !ok {
			code = codes.Unknown
		}
		out.Err = status.Error(code, text)
	case out.none():
		out.Err = status.Error(codes.Unknown, "fault of a script")
	}
	return out
}

// check returns the errors in a rule, with their places.
func (f FaultRule) check(at string) error {
	err := errors.Join(checkTime(under(at, "delay"), f.Delay), checkTime(under(at, "stale"), f.Stale))
	if f.Method != "" && !isMethod(f.Method) {
		err = errors.Join(err, fmt.Errorf("%s: the CRI has no method %q", under(at, "method"), f.Method))
	}
	if f.Stale > 0 && f.Method != "" && !slices.Contains(staleLists, f.Method) {
		err = errors.Join(err, fmt.Errorf("%s: only %s can be", under(at, "stale"), strings.Join(staleLists, ", ")))
	}
	if f.After < 0 {
		err = errors.Join(err, negative(under(at, "after"), f.After))
	}
	if f.Count < 0 {
		err = errors.Join(err, negative(under(at, "count"), f.Count))
	}
	if !(f.Probability >= 0 && f.Probability <= 1) { // NaN too
		err = errors.Join(err, fmt.Errorf("%s: %v is not from 0 to 1", under(at, "probability"), f.Probability))
	}
	if _, ok := codeNamed(f.Code); !ok && f.Code != "" {
		err = errors.Join(err, fmt.Errorf("%s: %q is no code of gRPC that an error can have", under(at, "code"), f.Code))
	}
	if f.Hang && (f.Error != "" || f.Code != "") {
		err = errors.Join(err, fmt.Errorf("%s: a call that hangs has no error of its own", under(at, "hang")))
	}
	return err
}

// staleLists are the methods with Fault.Stale.
var staleLists = []string{"ListPodSandbox", "ListContainers", "ListImages"}

// isMethod reports whether name is a method with faults.
func isMethod(name string) bool {
	switch name {
	case "Close": // a method of the client, not of the CRI
		return false
	case "StreamExec", "StreamAttach", "StreamPortForward":
		return true
	}
	_, ok := reflect.TypeFor[internalapi.RuntimeService]().MethodByName(name)
	if !ok {
		_, ok = reflect.TypeFor[internalapi.ImageManagerService]().MethodByName(name)
	}
	return ok
}

// codeNamed returns the gRPC code with a name in Go.
func codeNamed(name string) (codes.Code, bool) {
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		if c.String() == name {
			return c, true
		}
	}
	return codes.Unknown, false
}
