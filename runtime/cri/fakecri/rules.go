package fakecri

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	internalapi "k8s.io/cri-api/pkg/apis"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

// checkRules returns the errors of rules that cannot apply to calls of the CRI.
func checkRules(rules []fake.Rule) (err error) {
	for _, r := range rules {
		if m := r.Call.Method; m != "" && !isMethod(m) {
			err = errors.Join(err, fmt.Errorf("fault %s: the CRI has no method %q", r, m))
		} else if r.Fault.Stale > 0 && m != "" && !slices.Contains(staleLists, m) {
			err = errors.Join(err, fmt.Errorf("fault %s: only %s can be stale", r, strings.Join(staleLists, ", ")))
		}
		var e *fake.Error
		if errors.As(r.Fault.Err, &e) && e.Code != "" {
			if _, ok := codeNamed(e.Code); !ok {
				err = errors.Join(err, fmt.Errorf("fault %s: %q is no code of gRPC that an error can have", r, e.Code))
			}
		}
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

// asStatus returns the error of a fault with its gRPC code.
func asStatus(method string, err error) error {
	var e *fake.Error
	switch {
	case errors.Is(err, fake.ErrLost):
		return status.Errorf(codes.Unavailable, "fakecri: response of %s was lost", method)
	case errors.As(err, &e):
		code, _ := codeNamed(e.Code)
		return status.Error(code, e.Message)
	}
	return err
}
