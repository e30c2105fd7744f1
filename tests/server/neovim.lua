-- What a user does with a finding, in the file that Neovim was started with. The configuration is that of docs/editor.md.

local function wait_for(what, right)
  if not vim.wait(100000, right, 50) then
    print("There is no " .. what .. ": " .. vim.inspect(vim.diagnostic.get(0)))
    vim.cmd("cquit 3")
  end
end

local function found()
  return #vim.diagnostic.get(0)
end

local ok, problem = pcall(function()
  wait_for("finding", function() return found() == 1 end)
  local finding = vim.diagnostic.get(0)[1]
  print(finding.code, finding.lnum, finding.col, finding.source)
  -- What is typed moves it.
  vim.api.nvim_buf_set_lines(0, 0, 0, true, { "# \240\159\144\141 a comment" })
  wait_for("moved finding", function() return found() == 1 and vim.diagnostic.get(0)[1].lnum == finding.lnum + 1 end)
  vim.api.nvim_win_set_cursor(0, { finding.lnum + 2, finding.col })
  if vim.fn.has("nvim-0.8") == 1 then
    vim.lsp.buf.code_action({ apply = true, filter = function(action) return action.isPreferred end })
  else -- which always asks
    vim.ui.select = function(items, _, chosen)
      for _, item in ipairs(items) do
        if item[2].isPreferred then
          return chosen(item)
        end
      end
    end
    vim.lsp.buf.code_action()
  end
  wait_for("end of the finding", function() return found() == 0 end)
  print(table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, true), "\n"))
end)
if not ok then
  print(problem)
  vim.cmd("cquit 4")
end
vim.cmd("qall!")
