package dratest

import (
	"context"
	"errors"
	"fmt"

	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"
)

// A Fault is what a driver does wrong in each call.
type Fault int

// The faults of a driver.
const (
	NoFault       Fault = iota
	Hang                // the call does not return before its deadline
	Fail                // the call fails and changes nothing
	FailAfter           // the call fails after it has been executed
	FailClaims          // the call succeeds with an error for each claim
	OmitClaims          // the response has no claims
	UnknownClaim        // the response has a claim that was not requested
	InvalidDevice       // the devices have an invalid CDI name
	TooManyDevices
)

// SetFault makes the driver commit a fault until the next SetFault.
func (d *Driver) SetFault(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = f
}

// before returns the error of a call that is not executed.
func (f Fault) before(ctx context.Context) error {
	switch f {
	case Hang:
		<-ctx.Done()
		return ctx.Err()
	case Fail:
		return errors.New("failed")
	}
	return nil
}

func (f Fault) alterPrepared(claims map[string]*drav1.NodePrepareResourceResponse) {
	for _, r := range claims {
		switch f {
		case FailClaims:
			r.Devices, r.Error = nil, "claim failed"
		case InvalidDevice:
			r.Devices = []*drav1.Device{{PoolName: "pool", DeviceName: "bad", CdiDeviceIds: []string{"../../etc=x"}}}
		case TooManyDevices:
			for i := range 10_000 {
				r.Devices = append(r.Devices, &drav1.Device{PoolName: "pool", DeviceName: fmt.Sprint("more-", i)})
			}
		}
	}
	switch f {
	case OmitClaims:
		clear(claims)
	case UnknownClaim:
		claims["unknown"] = &drav1.NodePrepareResourceResponse{}
	}
}

func (f Fault) alterUnprepared(claims map[string]*drav1.NodeUnprepareResourceResponse) {
	switch f {
	case FailClaims:
		for _, r := range claims {
			r.Error = "claim failed"
		}
	case OmitClaims:
		clear(claims)
	case UnknownClaim:
		claims["unknown"] = nil
	}
}
