package prober

import "container/heap"

// timers are the workers that wait, the one whose time comes first at the top.
type timers []*worker

// set gives w the place that its wake asks for.
func (t *timers) set(w *worker) {
	if w.place < 0 {
		heap.Push(t, w)
	} else {
		heap.Fix(t, w.place)
	}
}

// drop takes w out.
func (t *timers) drop(w *worker) {
	if w.place >= 0 {
		heap.Remove(t, w.place)
	}
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].wake.Before(t[j].wake) }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].place, t[j].place = i, j
}
func (t *timers) Push(w any) {
	w.(*worker).place = len(*t)
	*t = append(*t, w.(*worker))
}
func (t *timers) Pop() any {
	last := len(*t) - 1
	w := (*t)[last]
	(*t)[last] = nil
	*t, w.place = (*t)[:last], -1
	return w
}
