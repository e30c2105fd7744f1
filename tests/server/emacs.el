;;; What a user does with a finding, in a.py. The configuration is that of docs/editor.md, which was loaded before.  -*- lexical-binding: t -*-

(require 'cl-lib)
(require 'eglot)
(require 'flymake)

(defun wait-for (what right)
  "Wait until RIGHT returns something; end Emacs with an error that names WHAT if it does not."
  (let ((patience 1000) answer)
    (while (and (not (setq answer (funcall right))) (> patience 0))
      (setq patience (1- patience))
      (accept-process-output nil 0.1))
    (or answer (error "There is no %s: %s" what (flymake-diagnostics)))))

(defun found () (flymake-diagnostics))

(find-file "a.py")
;; Eglot connects when Emacs is idle, which a batch never is.
(run-hooks 'post-command-hook)
(wait-for "connection" #'eglot-current-server)
(wait-for "finding" #'found)
(let ((finding (car (found))))
  (message "finding: %s at %s" (buffer-substring (flymake-diagnostic-beg finding) (flymake-diagnostic-end finding))
           (line-number-at-pos (flymake-diagnostic-beg finding)))
  (goto-char (flymake-diagnostic-beg finding)))
;; Choose from the keyboard, and the first that is offered.
(setq last-nonmenu-event ?x)
(cl-letf (((symbol-function 'completing-read) (lambda (_prompt choices &rest _) (caar choices))))
  (call-interactively #'eglot-code-actions))
;; Eglot tells the server what changed when Emacs is idle.
(eglot--signal-textDocument/didChange)
(wait-for "end of the finding" (lambda () (null (found))))
(message "text: %S" (buffer-string))
(set-buffer-modified-p nil)
(eglot-shutdown (eglot-current-server))
