package main

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// watchAPI tells the judge what the API server says of pods until ctx ends, also
// after times in which there is none.
func (w *world) watchAPI(ctx context.Context) {
	for ctx.Err() == nil {
		_ = w.watchOnce(ctx) // it ends with the API server
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
		w.sawPod(&list.Items[i])
	}
	for _, uid := range w.judge.there() {
		if !there[uid] {
			w.sawNoPod(uid)
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
			w.sawPod(pod)
			w.sawNoPod(string(pod.UID))
		default:
			w.sawPod(pod)
		}
	}
	return nil
}

// sawPod takes a pod as the API has it. That nothing of one that has ended runs is
// looked up at this moment.
func (w *world) sawPod(pod *v1.Pod) {
	if !w.judge.status(pod) {
		return
	}
	pids := w.of(string(pod.UID))
	w.judge.check(terminalEnd, len(pids) == 0, pod.Name, "%s was told, and processes %v live", pod.Status.Phase, pids)
}

func (w *world) sawNoPod(uid string) {
	w.judge.removed(uid)
	pids := w.of(uid)
	w.judge.check(goneIsGone, len(pids) == 0, w.judge.was(uid), "processes %v live", pids)
}

// of returns the processes of a pod that live.
func (w *world) of(uid string) (pids []int) {
	for _, p := range processes(w.dir) {
		if p.uid == uid && p.alive() {
			pids = append(pids, p.pid)
		}
	}
	return pids
}
