package logread

import (
	"sync"

	"github.com/fsnotify/fsnotify"
)

// listen is the default of Config.Watch.
func listen(dir string, changed func()) (func(), error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := w.Add(dir); err != nil {
		_ = w.Close()
		return nil, err
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case _, ok := <-w.Events:
				if !ok {
					return
				}
				changed()
			case _, ok := <-w.Errors:
				if !ok {
					return
				}
				changed() // events were lost
			}
		}
	})
	return func() {
		_ = w.Close()
		wg.Wait()
	}, nil
}
