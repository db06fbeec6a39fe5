package jobs_test

import (
	"context"
	"fmt"
	"log"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/kube/provider/jobs"
	"github.com/kubeparts/kubeparts/runtime"
)

// A service is a list of jobs, whose states the example sets.
type service struct{ all []jobs.Status }

func (s *service) Submit(_ context.Context, job jobs.Job) error {
	s.all = append(s.all, jobs.Status{ID: job.ID, Labels: job.Labels, Submitted: time.Now()})
	return nil
}

func (s *service) List(context.Context) ([]jobs.Status, error) {
	return append([]jobs.Status(nil), s.all...), nil
}

func (s *service) Cancel(_ context.Context, id string, _ time.Duration) error {
	for i := range s.all {
		if s.all[i].ID == id {
			s.all[i].Ended, s.all[i].ExitCode = time.Now(), 143
		}
	}
	return nil
}

// A pod becomes a job, which is queued, runs and is canceled.
func Example() {
	ctx, batch := context.Background(), new(service)
	rt, err := jobs.New(jobs.Config{Service: batch})
	if err != nil {
		log.Fatal(err)
	}
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "report", UID: "6f1e"},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "main", Image: "report:1"}}},
	}
	show := func() {
		status, err := rt.PodStatus(ctx, pod.UID)
		if err != nil {
			log.Fatal(err)
		}
		c := status.Containers[0]
		fmt.Println(c.ID, c.State, c.ExitCode)
	}
	if _, err := rt.SyncPod(ctx, runtime.SyncRequest{Pod: pod}); err != nil {
		log.Fatal(err)
	}
	show()
	batch.all[0].Started = time.Now()
	show()
	if err := rt.KillPod(ctx, runtime.KillRequest{UID: pod.UID, Pod: pod}); err != nil {
		log.Fatal(err)
	}
	show()
	// Output:
	// job://6f1e-main-0 created 0
	// job://6f1e-main-0 running 0
	// job://6f1e-main-0 exited 143
}
