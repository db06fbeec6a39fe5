package prober

import "container/heap"

// timers is a heap of workers by wake time.
type timers []*worker

// set inserts w or moves it to the position of its wake time.
func (t *timers) set(w *worker) {
	if w.index < 0 {
		heap.Push(t, w)
	} else {
		heap.Fix(t, w.index)
	}
}

// drop removes w.
func (t *timers) drop(w *worker) {
	if w.index >= 0 {
		heap.Remove(t, w.index)
	}
}

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].wake.Before(t[j].wake) }
func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].index, t[j].index = i, j
}
func (t *timers) Push(w any) {
	w.(*worker).index = len(*t)
	*t = append(*t, w.(*worker))
}
func (t *timers) Pop() any {
	last := len(*t) - 1
	w := (*t)[last]
	(*t)[last] = nil
	*t, w.index = (*t)[:last], -1
	return w
}
