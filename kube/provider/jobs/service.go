package jobs

import (
	"context"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime/resolved"
)

// A Service runs jobs. It must be safe for concurrent use. If ctx is done, its methods return
// ctx's error.
type Service interface {
	// Submit queues a job and returns. It must not queue a job whose ID exists: after a lost
	// response, the job is submitted again.
	Submit(ctx context.Context, job Job) error

	// List returns all jobs with their labels, in any order: those in the queue, those that
	// run, and those that have ended, for as long as the pods exist. It must show the effects
	// of earlier calls. It is called once per second, and about ten times in the life of each
	// pod.
	List(ctx context.Context) ([]Status, error)

	// Cancel removes a job from the queue, or stops it: TERM, and KILL after the grace period.
	// It returns when the job has ended (a service that cannot wait lists jobs until then), and
	// nil if it had ended before or does not exist. A later call replaces the grace period.
	Cancel(ctx context.Context, id string, grace time.Duration) error
}

// A Logger is a Service that returns the logs of jobs. Without it, there are no logs.
type Logger interface {
	// Log returns the log of the job with an ID; see provider.LogStreamer. The error for an
	// unknown job is runtime.ErrNotFound.
	Log(ctx context.Context, id string, opts *v1.PodLogOptions) (io.ReadCloser, error)
}

// A Job is an instance of a container to run.
type Job struct {
	// ID is unique: the UID of the pod, the name of the container and its restart count.
	ID string

	// Labels must be in the Status of the job. Their number and length are bounded; those of
	// names of pods and images are those of the API.
	Labels map[string]string

	// Container has the image, the command, the variables and the resources. It must not be
	// modified.
	Container *v1.Container

	// Resolved has the command and the variables of Container without references, its mounts and the
	// credentials for its image; nil without Config.Resolver. Volumes are those that it mounts, one for
	// each of its mounts. They are those of the submission: a restart has current ones.
	Resolved *resolved.Container
	Volumes  []resolved.Volume
}

// A Status is the state of a job. It is in the queue until Started, and runs until Ended; a job
// that was canceled in the queue has only Ended. Times that have not been reached are zero.
type Status struct {
	ID                        string
	Labels                    map[string]string
	Submitted, Started, Ended time.Time
	ExitCode                  int32  // of a job that has ended
	Message                   string // why it has ended; may be empty
}
