package runtime

import "k8s.io/apimachinery/pkg/types"

// A Rejection is the reason why a pod may not run on the node. It is an error
// with its Message; errors.As finds it in the errors of subsystems that return
// it wrapped. Subsystems return it as a pointer, nil if the pod may run.
type Rejection struct {
	// Reason and Message become those of the pod's status: "OutOfcpu".
	Reason  string
	Message string

	// Deferred reports that the pod may be admitted later, for example when the
	// plugin of a device has registered: the pod stays Pending and is admitted
	// again for a limited time (pipeline.Admission.Timeout). If false
	// and Preempt is empty, the pod fails.
	Deferred bool

	// Preempt lists pods that must terminate before this one may run. The pod
	// stays Pending, as if Deferred; pods of the list that their source still
	// specifies are killed, for all others it waits, and it is admitted again
	// when all of them have finished (rule adm-10).
	Preempt []types.UID

	// Err is the cause that Unwrap returns. May be nil.
	Err error
}

// Error returns the message.
func (r *Rejection) Error() string { return r.Message }

// Unwrap returns the cause, or nil.
func (r *Rejection) Unwrap() error { return r.Err }
