package fakecri

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"reflect"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	internalapi "k8s.io/cri-api/pkg/apis"
)

// A FaultRule is a fault of some calls. The zero value fails every call.
type FaultRule struct {
	// Method, Pod (its UID), Container and Image are those of the calls that it
	// is about; empty: any.
	Method, Pod, Container, Image string

	// After so many of those calls, it begins; Count, if above zero, is how many
	// it hits. Probability, if above zero, is that with which it hits one.
	After, Count int
	Probability  float64

	// Delay, Lost, Hang and Stale are as in Fault.
	Delay time.Duration
	Lost  bool
	Hang  bool
	Stale time.Duration

	// Error is the text, and Code the name of the gRPC code ("Unavailable"), of
	// what the call fails with. Without any of the fields from Delay on it is
	// "fault of a script", Unknown.
	Error string
	Code  string
}

// FaultFunc returns a function for Config.Faults that follows the rules of the
// script, which must be right, as those of ParseScript are. Chance depends on
// the seed and on which call of this method about this container it is, not on
// what other pods do meanwhile: a run in which goroutines race has the same
// faults again.
func (s Script) FaultFunc(seed uint64) func(Call) Fault {
	rules := make([]*faultRule, len(s.Faults))
	for i, rule := range s.Faults {
		rules[i] = &faultRule{FaultRule: rule, fault: rule.fault(), seed: seed + uint64(i)<<32}
	}
	return func(c Call) Fault {
		for _, rule := range rules {
			if rule.about(c) && rule.strikes(c) {
				return rule.fault
			}
		}
		return Fault{}
	}
}

// A faultRule is a FaultRule at work.
type faultRule struct {
	FaultRule
	fault Fault
	seed  uint64

	mu    sync.Mutex // guards the fields below
	calls int
	hits  int
	alike map[Call]int // calls so far, without their numbers; only where there is chance
}

func (f *FaultRule) about(c Call) bool {
	fits := func(want, is string) bool { return want == "" || want == is }
	return fits(f.Method, c.Method) && fits(f.Pod, c.Pod) && fits(f.Container, c.Container) &&
		(f.Image == "" || c.Image != "" && sameImage(f.Image, c.Image))
}

// strikes counts a call that the rule is about, and reports whether it is hit.
func (f *faultRule) strikes(c Call) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	if f.calls <= f.After || f.Count > 0 && f.hits >= f.Count {
		return false
	}
	if f.Probability > 0 && f.Probability < 1 {
		c.Number = 0
		if f.alike == nil {
			f.alike = map[Call]int{}
		}
		f.alike[c]++
		if chance(f.seed, c, f.alike[c]) >= f.Probability {
			return false
		}
	}
	f.hits++
	return true
}

// chance is a number from 0 to 1 that belongs to the n-th call of a kind.
func chance(seed uint64, c Call, n int) float64 {
	h := fnv.New64a()
	for _, part := range []string{c.Method, c.Pod, c.Container, c.Image} {
		_, _ = io.WriteString(h, part+"\x00") // never fails
	}
	_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(n)))
	return rand.New(rand.NewPCG(seed, h.Sum64())).Float64()
}

// fault is what the rule says of a call that is hit.
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
	case out == Fault{}:
		out.Err = status.Error(codes.Unknown, "fault of a script")
	}
	return out
}

// check returns what is wrong with a rule, with its place.
func (f FaultRule) check(at string) error {
	err := errors.Join(checkTime(under(at, "delay"), f.Delay), checkTime(under(at, "stale"), f.Stale))
	if f.Method != "" && !isMethod(f.Method) {
		err = errors.Join(err, fmt.Errorf("%s: the CRI has no method %q", under(at, "method"), f.Method))
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

// isMethod reports whether the name is that of a call that can be faulty.
func isMethod(name string) bool {
	if name == "Close" {
		return false // of the client, not of the CRI
	}
	_, ok := reflect.TypeFor[internalapi.RuntimeService]().MethodByName(name)
	if !ok {
		_, ok = reflect.TypeFor[internalapi.ImageManagerService]().MethodByName(name)
	}
	return ok
}

// codeNamed returns the code of gRPC with a name as Go has it.
func codeNamed(name string) (codes.Code, bool) {
	for c := codes.Canceled; c <= codes.Unauthenticated; c++ {
		if c.String() == name {
			return c, true
		}
	}
	return codes.Unknown, false
}
