package chaos

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watchAPI passes the pods of the API server to the checker until ctx is done. It reconnects
// after interruptions.
func (w *world) watchAPI(ctx context.Context) {
	for ctx.Err() == nil {
		_ = w.watchOnce(ctx) // fails with the API server
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

func (w *world) watchOnce(ctx context.Context) error {
	listing, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	list, err := w.api.CoreV1().Pods(namespace).List(listing, metav1.ListOptions{})
	if err != nil {
		return err
	}
	there := map[string]bool{}
	for i := range list.Items {
		there[string(list.Items[i].UID)] = true
		w.podObserved(&list.Items[i])
	}
	for _, uid := range w.checker.existing() {
		if !there[uid] {
			w.podDeleted(uid)
		}
	}
	events, err := w.api.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return err
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		pod, ok := e.Object.(*v1.Pod)
		switch {
		case !ok:
			return errors.New("the watch has ended")
		case e.Type == watch.Deleted:
			w.podObserved(pod)
			w.podDeleted(string(pod.UID))
		default:
			w.podObserved(pod)
		}
	}
	return nil
}

// podObserved passes a pod to the checker. If its phase is terminal, its processes are checked at this
// moment.
func (w *world) podObserved(pod *v1.Pod) {
	if !w.checker.status(pod) {
		return
	}
	pids := w.of(string(pod.UID))
	w.checker.check(terminalMeansStopped, len(pids) == 0, pod.Name, "phase %s was reported, and processes %v exist", pod.Status.Phase, pids)
}

func (w *world) podDeleted(uid string) {
	w.checker.removed(uid)
	pids := w.of(uid)
	w.checker.check(deletedAfterCleanup, len(pids) == 0, w.checker.podName(uid), "processes %v exist", pids)
}

// of returns the processes of a pod.
func (w *world) of(uid string) (pids []int) {
	for _, p := range processes(w.Dir) {
		if p.uid == uid && p.alive() {
			pids = append(pids, p.pid)
		}
	}
	return pids
}
